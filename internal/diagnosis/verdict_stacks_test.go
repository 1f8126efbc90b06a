package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// dumped is what a JVM said of a server's 20 threads.
func dumped(groups ...model.StackGroup) func(*model.Listener) {
	return func(l *model.Listener) {
		p := *l.Process
		p.Stacks = &model.Stacks{Threads: 25, Workers: 20, Groups: groups}
		l.Process = &p
	}
}

func locked(n int, state string) model.StackGroup {
	return model.StackGroup{Threads: n, Worker: true, State: state, Library: "java.lang.Thread.sleep", Application: "com.acme.Orders.find"}
}

// A server whose threads wait inside it: as seen from outside, and from within.
func TestWhatThreadsWaitForInside(t *testing.T) {
	finding := func(change ...func(*model.Listener)) *model.Finding {
		k := usedUp(20)
		for _, c := range change {
			k = k.do(c)
		}
		for _, f := range Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds()).Findings {
			if f.Code == "waiting_inside" {
				return &f
			}
		}
		return nil
	}
	parked := func(n int) func(*model.Listener) {
		return func(l *model.Listener) {
			l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 20, Running: 20 - n, Parked: n}}
		}
	}
	idle := model.StackGroup{Threads: 1, Worker: true, Idle: true, State: "WAITING", Library: "x.Queue.take"}

	require.Nil(t, finding(), "nothing is known")
	require.Nil(t, finding(parked(5)), "most of them run")
	f := finding(parked(19))
	require.Equal(t, "19 busy threads wait for a lock, a pool or a timer, none of them in a call on a connection.", f.Evidence)
	require.Contains(t, f.Advice, "--thread-dump")

	f = finding(parked(19), dumped(locked(19, "BLOCKED"), idle))
	require.Equal(t, "19 busy threads wait for a lock, a pool or a timer, none of them in a call on a connection; a thread dump shows of 19 threads at work 19 in Thread.sleep called by Orders.find.", f.Evidence)
	require.Contains(t, f.Advice, "Look at Orders.find")
	require.NotContains(t, f.Advice, "--thread-dump")

	require.NotNil(t, finding(dumped(locked(19, "TIMED_WAITING"), idle)), "the JVM's word alone")
	require.Nil(t, finding(dumped(locked(19, "RUNNABLE"), idle)), "they run, or read from a socket")
	require.Nil(t, finding(dumped(idle)), "nobody works")
	require.Nil(t, finding(dumped(locked(2, "BLOCKED"), locked(17, "RUNNABLE"))), "few of them")
}

// Of a pool that is used up the stacks say who waits where, and no more.
func TestStacksBesideAPool(t *testing.T) {
	entering := model.StackGroup{Threads: 17, Worker: true, State: "TIMED_WAITING", Library: "com.zaxxer.hikari.HikariDataSource.getConnection", Application: "com.acme.Orders.find"}
	inRead := model.StackGroup{Threads: 3, Worker: true, State: "RUNNABLE", Library: "org.postgresql.jdbc.PgStatement.execute", Application: "com.acme.Orders.find"}
	k := usedUp(20, database(3, hikari(3))).do(dumped(entering, inRead))
	v := Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds())
	require.Equal(t, pool, v.Cause)
	require.Contains(t, v.Findings[0].Evidence, "a thread dump shows of 20 threads at work 17 in HikariDataSource.getConnection called by Orders.find, 3 in PgStatement.execute called by Orders.find")
	for _, f := range v.Findings {
		require.NotEqual(t, "waiting_inside", f.Code)
	}
}

func TestADeadlockIsSaid(t *testing.T) {
	k := tomcat(20, 8192, 100).pool(20).do(dumped()).do(func(l *model.Listener) { l.Process.Stacks.Deadlocked = true })
	v := Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds())
	require.Equal(t, "deadlock", v.Findings[0].Code)
	require.Equal(t, model.SeverityCritical, v.Findings[0].Severity)
}

// Threads that wait for their own clients are no threads that wait for a lock.
func TestThreadsThatWaitForTheirClients(t *testing.T) {
	answer := func(change ...func(*model.Listener)) model.Answer {
		k := usedUp(20)
		for _, c := range change {
			k = k.do(c)
		}
		return Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds()).Answer
	}
	parked := func(l *model.Listener) {
		l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 20, Parked: 20, Timed: 20}}
	}
	in := func(method string) model.StackGroup {
		g := locked(20, "TIMED_WAITING")
		g.Frames = []string{"java.lang.Object.wait", method}
		return g
	}
	a := answer(parked)
	require.Contains(t, a.Why, "20 of the threads wait for a lock, a pool, a timer or the rest of a request.")
	require.Equal(t, "See what the 20 threads wait for", a.Do[0].Text)

	a = answer(parked, func(l *model.Listener) {
		l.Connections.Phases[model.Sending], l.Connections.Phases[model.InService] = 18, 2
	})
	require.Contains(t, a.Why, "18 of the threads wait for clients that do not take their responses.")
	require.Equal(t, "Let a proxy in front buffer the responses, or send less: 18 threads wait for clients that do not take their responses", a.Do[0].Text)

	a = answer(parked, dumped(in("org.apache.catalina.connector.InputBuffer.realReadBytes")))
	require.Contains(t, a.Why, "20 of the threads wait for clients that do not send the rest of their requests.")
	require.Equal(t, "Let a proxy in front buffer the requests, which then come at once: 20 threads wait for clients that do not send the rest of their requests", a.Do[0].Text)

	a = answer(parked, dumped(in("org.apache.catalina.connector.OutputBuffer.realWriteBytes")))
	require.Contains(t, a.Why, "20 of the threads wait for clients that do not take their responses.")
}

// The command for a thread dump is one that runs where the reader is: in a container may be no shell and no sudo.
func TestCommandForAThreadDump(t *testing.T) {
	command := func(change func(*model.Listener)) string {
		k := usedUp(20).do(func(l *model.Listener) {
			l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 20, Parked: 20}}
		}).do(change)
		return Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds()).Answer.Do[0].Command
	}
	require.Equal(t, `sudo -u "$(ps -o user= -p 42)" tcpdiag snapshot --pid 42 --thread-dump`, command(func(*model.Listener) {}))
	require.Equal(t, `sudo setpriv --reuid="$(stat -c %u /proc/42)" --regid="$(stat -c %g /proc/42)" --clear-groups tcpdiag snapshot --pid 42 --thread-dump`,
		command(func(l *model.Listener) { l.Process.Container = "4f1d" }))
	pod := func(name string) func(*model.Listener) {
		return func(l *model.Listener) {
			l.Process.Container, l.Pod = "4f1d", &model.Pod{Namespace: "shop", Name: name}
		}
	}
	require.Equal(t, "kubectl tcpdiag orders-6b7d9c -n shop --thread-dump", command(pod("orders-6b7d9c")))
	require.NotContains(t, command(pod("orders; reboot")), "reboot")
}
