package diagnosis

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func jetty(l *model.Listener) { l.Connector = &model.Connector{Server: "jetty"} }

// unseen is a listener of which the sockets alone are seen: a sidecar without the server's pid namespace.
func unseen(l *model.Listener) { l.Connector, l.Process = nil, nil }

// nginx has that many worker processes, of which some are stopped.
func nginx(stopped, of int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connector, l.Process.Comm = &model.Connector{Server: model.ServerOther().Name}, "nginx"
		l.Process.Children, l.Process.StoppedChildren, l.Process.StoppedChild = of, stopped, 101
	}
}

// more are the processes that it has started beyond those that were read.
func more(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Process.ChildrenUnread = n }
}

// leftUnread are clients that closed, and nobody has read their requests.
func leftUnread(n int, since time.Duration) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connections.Accepted += n
		l.Connections.Phases[model.ClientClosed] += n
		l.Connections.Abandoned, l.Connections.Unread = n, since
	}
}

// silent is a peer that answers no connect.
func silent(connects int, oldest time.Duration) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Process.Downstream = &model.Downstream{Peers: []model.Peer{{
			Address: netip.MustParseAddrPort("10.0.3.7:5432"), Connections: connects, Connecting: connects, OldestConnect: oldest,
		}}}
	}
}

// nobodyAccepted is for how long.
func nobodyAccepted(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.AcceptQueue.NoAcceptFor = new(d) }
}

// takenAgo is when the queue last became shorter.
func takenAgo(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.AcceptQueue.TakenAgo = new(d) }
}

// standsFor is for how long it has not.
func standsFor(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.AcceptQueue.StandsFor = new(d) }
}

// Requests that nobody reads, whatever the server is, and whoever does not run.
func scenariosUnread() []scenario {
	free := func() look { return tomcat(200, 8192, 100).pool(20) }
	unread := func(now, before time.Duration, who func(*model.Listener)) (a, b look) {
		return free().waiting(12).do(who).do(unreadFor(now)), free().waiting(12).do(who).do(unreadFor(before))
	}
	both := func(name string, status model.Status, cause model.Cause, codes, notCodes []string, l func() look) scenario {
		return scenario{name: name, now: l(), before: l(), status: status, cause: cause, codes: codes, notCodes: notCodes}
	}
	stands := []string{"requests_stand"}
	jettyNow, jettyBefore := unread(3*time.Second, 2*time.Second, jetty)
	unseenNow, unseenBefore := unread(3*time.Second, 2*time.Second, unseen)
	passingNow, passingBefore := unread(300*time.Millisecond, 200*time.Millisecond, jetty)
	return []scenario{
		{name: "Jetty: nobody reads the requests of 12 connections", status: warning, now: jettyNow, before: jettyBefore, codes: stands},
		{name: "the process is not seen: nobody reads the requests of 12 connections", status: warning, now: unseenNow, before: unseenBefore, codes: stands},
		{name: "Jetty: requests are unread for a moment", status: ok, now: passingNow, before: passingBefore, notCodes: stands},
		both("Jetty: nobody has read the requests of clients that have left", warning, "", stands, []string{"clients_left"}, func() look {
			return free().do(jetty).do(leftUnread(12, 40*time.Second))
		}),
		both("Jetty: clients have left while the server has their requests", warning, "", []string{"clients_left"}, stands, func() look {
			return free().do(jetty).do(leftInside(12))
		}),
		both("a server that keeps connections which clients have closed, and has nothing of them", ok, "", nil, []string{"clients_left"}, func() look {
			return free().do(jetty).do(leftInside(12)).do(closedIdle)
		}),
		both("the process is not seen: nobody has been accepted for 3 s", warning, "", nil, nil, func() look {
			return free().queue(5, 3*time.Second).do(nobodyAccepted(3 * time.Second)).do(unseen)
		}),
		{
			name: "the process is not seen: the accept queue is full", status: saturated, chain: chainOf(acceptQueue), codes: []string{"limits_unknown"},
			now: free().queue(101, 3*time.Second).do(unseen), before: free().queue(101, 2*time.Second).do(unseen),
		},
		both("nginx, whose only worker process is stopped", saturated, model.CauseJVMPause, nil, []string{"not_accepting"}, func() look {
			return free().queue(5, 3*time.Second).do(nginx(1, 1)).do(acceptor(model.AcceptorMissing))
		}),
		both("nginx, all of whose worker processes are stopped, and whose first client in the queue has reset", saturated, model.CauseJVMPause, nil, []string{"not_accepting"}, func() look {
			return free().queue(5, 3*time.Second).do(nginx(2, 2)).do(acceptor(model.AcceptorMissing)).do(nobodyAccepted(0))
		}),
		both("the same, and all clients reset soon", saturated, model.CauseJVMPause, nil, []string{"not_accepting"}, func() look {
			return free().queue(5, 300*time.Millisecond).do(nginx(2, 2)).do(acceptor(model.AcceptorMissing)).do(nobodyAccepted(0)).do(standsFor(2 * time.Second))
		}),
		both("the same, and it has accepted one just before", saturated, model.CauseJVMPause, nil, []string{"not_accepting"}, func() look {
			return free().queue(5, 3*time.Second).do(nginx(2, 2)).do(acceptor(model.AcceptorMissing)).do(takenAgo(700 * time.Millisecond)).do(standsFor(700 * time.Millisecond))
		}),
		both("nginx, one of whose two worker processes is stopped, and has requests", warning, "", []string{"process_stopped"}, nil, func() look {
			return free().waiting(3).do(nginx(1, 2))
		}),
		both("nginx, one of whose two worker processes is stopped, and nobody waits", ok, "", []string{"process_stopped"}, nil, func() look {
			return free().idle(3).do(nginx(1, 2))
		}),
		both("a server that forks for each request, all of whose children are stopped, and nobody waits to be accepted", warning, "", []string{"process_stopped"}, nil, func() look {
			return free().inService(6).do(nginx(6, 6))
		}),
		both("the same, and the next client has left the accept queue since", warning, "", []string{"process_stopped"}, nil, func() look {
			return free().inService(6).queue(1, 0).do(nginx(6, 6)).do(takenAgo(20 * time.Millisecond))
		}),
		both("the same, and a client has come a moment ago", warning, "", []string{"process_stopped"}, []string{"jvm_pause"}, func() look {
			return free().inService(6).queue(1, 0).do(nginx(6, 6)).do(takenAgo(10 * time.Second))
		}),
		both("the same, and it accepts on, while more come than it takes", warning, "", []string{"process_stopped"}, []string{"jvm_pause"}, func() look {
			return free().inService(6).queue(9, 3*time.Second).do(nginx(6, 6)).do(takenAgo(300 * time.Millisecond))
		}),
		both("the same, and it waits for clients in accept(2)", warning, "", []string{"process_stopped"}, nil, func() look {
			return free().inService(6).queue(1, 0).do(nginx(6, 6)).do(acceptor(model.AcceptorAccepts))
		}),
		both("the same, and their clients have left", warning, "", []string{"process_stopped", "clients_left"}, nil, func() look {
			return free().do(nginx(6, 6)).do(leftInside(12))
		}),
		{
			name: "the same: a client waited when it was looked at first", status: warning, codes: []string{"process_stopped"}, notCodes: []string{"jvm_pause"},
			now: free().inService(6).do(nginx(6, 6)), before: free().inService(5).queue(1, 0).do(nginx(5, 5)),
		},
		both("a server that forks for each request, and waits for one of its stopped children to end", saturated, model.CauseJVMPause, nil, []string{"not_accepting"}, func() look {
			return free().inService(6).queue(5, 3*time.Second).do(nginx(6, 6)).do(nobodyAccepted(3 * time.Second)).do(acceptor(model.AcceptorMissing))
		}),
		both("php-fpm, of whose worker processes as many as are read are stopped, and there are more", warning, "", []string{"process_stopped"}, []string{"jvm_pause"}, func() look {
			return free().inService(3).queue(2, 3*time.Second).do(nginx(64, 64)).do(more(86))
		}),
		both("nginx, none of whose worker processes is stopped", ok, "", nil, []string{"process_stopped"}, func() look {
			return free().inService(3).do(nginx(0, 2))
		}),
		both("a backend that answers no connect, and threads are free", warning, "", []string{"backend_silent"}, nil, func() look {
			return free().inService(12).do(silent(12, 7*time.Second))
		}),
		both("the same, and the clients have left", warning, "", []string{"backend_silent"}, nil, func() look {
			return free().with(model.ClientClosed, 5).do(silent(5, 7*time.Second))
		}),
		both("a backend that has not answered connects yet", ok, "", nil, []string{"backend_silent"}, func() look {
			return free().inService(12).do(silent(12, 2*time.Second))
		}),
		both("two connects that are not answered, as of a task of its own", ok, "", nil, []string{"backend_silent"}, func() look {
			return free().inService(12).do(silent(2, 30*time.Second))
		}),
		both("connects that are not answered, while nobody waits for an answer", ok, "", nil, []string{"backend_silent"}, func() look {
			return free().idle(12).do(silent(12, 30*time.Second))
		}),
		both("connects that are not answered, a few beside many requests", ok, "", nil, []string{"backend_silent"}, func() look {
			return tomcat(200, 8192, 100).pool(200).inService(100).do(silent(5, 30*time.Second))
		}),
		both("connects that are not answered, and may be another process's", ok, "", nil, []string{"backend_silent"}, func() look {
			return free().inService(12).do(silent(12, 7*time.Second)).do(func(l *model.Listener) { l.Process.Downstream.ByUser = true })
		}),
	}
}

// What is said of these, and what to do about it.
func TestRequestsThatNobodyReads(t *testing.T) {
	said := func(l look) model.Verdict {
		return Judge(symptoms.Input{Now: l.Listener, Before: l.Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	}
	free := func() look { return tomcat(200, 8192, 100).pool(20) }
	v := said(free().waiting(12).do(jetty).do(unreadFor(3 * time.Second)))
	require.Equal(t, "Nothing is lost; at least 12 requests wait to be read, the first for over 3 s; why is unknown: 12 connections, 0 of 101 in the accept queue.", v.Summary)
	require.Contains(t, v.Answer.Do[0].Text, "See what its threads do")
	v = said(free().waiting(12).do(unseen).do(unreadFor(3 * time.Second)))
	require.Equal(t, "See what the server is busy with, and which limits of its own it has", v.Answer.Do[0].Text)
	v = said(free().queue(5, 3*time.Second).do(nginx(1, 1)).do(acceptor(model.AcceptorMissing)))
	require.Equal(t, "5 connections wait in the accept queue (capacity 101) because the worker process of nginx, 101, is stopped (state T); nothing is lost yet.", v.Summary)
	require.Equal(t, "kill -CONT 101", v.Answer.Do[1].Command)
	v = said(free().queue(5, 3*time.Second).do(nginx(4, 4)))
	require.Equal(t, "pkill -CONT -P 42", v.Answer.Do[1].Command)
	v = said(free().waiting(3).do(nginx(1, 2)))
	require.Equal(t, "Nothing is lost; one of the 2 worker processes of nginx, 101, is stopped (state T): 3 connections, 0 of 101 in the accept queue.", v.Summary)
	require.Equal(t, "kill -CONT 101", v.Answer.Do[0].Command)
	for stopped, want := range map[int]string{1: "one of at least 64 worker processes of nginx, 101, is", 7: "7 of at least 64 worker processes of nginx are", 64: "64 of at least 64 worker processes of nginx are"} {
		v = said(free().waiting(3).do(nginx(stopped, 64)).do(more(86)))
		require.Contains(t, v.Summary, want)
	}
	require.Contains(t, said(free().waiting(3).do(nginx(1, 1)).do(more(86))).Summary, "one of at least 1 worker process of nginx, 101, is")
	v = said(free().inService(12).do(silent(12, 7*time.Second)))
	require.Equal(t, "10.0.3.7:5432 has not answered 12 connects, the first for at least 7 s: 12 of 200 threads busy, 12 of 8,192 connections, 0 of 101 in the accept queue.", v.Summary)
	require.Contains(t, v.Answer.Do[0].Text, "Find out why no connection to 10.0.3.7:5432 is answered")
	v = said(free().inService(12).do(silent(12, 7*time.Second)).do(leftInside(8)))
	require.Contains(t, v.Summary, "10.0.3.7:5432 has not answered 12 connects")
	require.Equal(t, "At least 8 clients left before the end of their answers.", v.Answer.What)
}
