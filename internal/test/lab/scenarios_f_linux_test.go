package lab

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// confused is what people confuse: limits and listeners.
func confused() []scenario {
	return []scenario{
		{
			name: "F1", load: "20 clients, threads 4, max-connections 100, accept-count 50, handler 2 s; connect 10 s, request 60 s",
			run: f1,
		},
		{
			name: "F2", load: "200 clients in 400 ms, acceptCount 5000, somaxconn 128, max-connections 10, handler 3 s; connect 900 ms, request 60 s; ended when the connect timeouts are over",
			sysctl: map[string]string{"net.core.somaxconn": "128"},
			run:    f2,
		},
		{
			name: "F3", load: "Spring Boot with accept-count 0 and max-connections -1; no load",
			run: f3,
		},
		{
			name: "F4", load: "100 clients/s, the JVM stopped (SIGSTOP) for 2 s, handler 20 ms; connect 10 s, request 30 s",
			run: stopped,
		},
		{
			name: "F4-gc", load: "300 clients/s, a full collection of a second (SerialGC, 2^25 objects), handler 20 ms; connect 10 s, request 30 s",
			run: collecting,
		},
		{
			name: "F5", load: "5 clients; the process is up, nothing listens on 8443",
			run: f5,
		},
		{name: "F6", load: "5 clients, max-connections 1, accept-count 10, handler 3 s; Spring Boot's graceful shutdown (SIGTERM) after 1 s, then 3 more; no timeouts; started anew", run: graceful},
		{
			name: "F7", load: "10 clients on 8080, 10 on 8443 (TLS; threads 2, max-connections 2, accept-count 1), handler 3 s; connect 900 ms, request 30 s",
			run: f7,
		},
		{name: "F8", load: "server.xml: two connectors share an Executor of 3 threads (their own maxThreads is 100); 8 clients, handler 3 s; no timeouts", run: sharedExecutor},
		addressed("F9-wild", "", "[::]:8080"),
		addressed("F9-four", "127.0.0.1", "127.0.0.1:8080"),
		addressed("F9-six", "::1", "[::1]:8080"),
		{
			name: "F9-netns", load: "a server in another network namespace than tcpdiag's; no load",
			run: f9Netns,
		},
	}
}

// stopped is F4: the queue fills while nobody calls accept(), although threads
// and connections are free.
// collecting: no signal stops this JVM. Its own counters show the pause only
// when it is over, and drops have to be explained before.
func collecting(b *scene) {
	server := b.server(rig.Limits{}, env("_JAVA_OPTIONS=-XX:+UseSerialGC -Xms2500m -Xmx2500m"))
	one := demo.BurstOptions{Clients: 1, ConnectTimeout: 10 * time.Second, RequestTimeout: time.Minute}
	ask := func(path string) result {
		one.Path = path
		return b.start(one).wait()
	}
	b.Holds(ask("/hoard?log2=25").ok == 1, "no hoard")
	ask("/collect") // the objects are old now
	w := b.agent(server.Port)
	crowd := b.start(demo.BurstOptions{
		Clients: 2400, Rate: 300, Path: hello(20 * time.Millisecond), ConnectTimeout: 10 * time.Second, RequestTimeout: 30 * time.Second,
	})
	b.Wait(2100 * time.Millisecond)
	pause := ask("/collect").max
	r := crowd.wait()
	b.clients("%s, the slowest after %.1f s, the collection took %.1f s", r, r.max.Seconds(), pause.Seconds())
	l := w.worst(port)
	b.said("worst: %s", words(l))
	b.verdict(l, "losing", "jvm_pause")
	b.onlyBy(l, "jvm_pause")
	w.conserved()
}

// onlyBy checks that nine of ten dropped packets have the one cause.
func (b *scene) onlyBy(l *rig.Listener, cause string) {
	if l.Losses == nil {
		b.Holds(false, "no losses")
		return
	}
	of := 0
	for _, by := range l.Losses.By {
		if by.Cause == cause {
			of += by.Packets
		}
	}
	b.Holds(10*of >= 9*l.Losses.DroppedPackets, "%d of %d packets by %s", of, l.Losses.DroppedPackets, cause)
}

func stopped(b *scene) {
	server := b.server(rig.Limits{})
	w := b.agent(port)
	crowd := b.start(demo.BurstOptions{
		Clients: 800, Rate: 100, Path: hello(20 * time.Millisecond), ConnectTimeout: 10 * time.Second, RequestTimeout: 30 * time.Second,
	})
	b.Wait(2100 * time.Millisecond)
	b.Must(syscall.Kill(server.PID, syscall.SIGSTOP))
	b.AtEnd(func() { _ = syscall.Kill(server.PID, syscall.SIGCONT) })
	b.Wait(2 * time.Second)
	b.Must(syscall.Kill(server.PID, syscall.SIGCONT))
	r := crowd.wait()
	b.clients("%s, the slowest after %.1f s", r, r.max.Seconds())
	l := w.worst(port)
	b.said("worst: %s", words(l))
	b.verdict(l, "losing", "jvm_pause")
	looks := w.on(port)
	last := looks[len(looks)-1]
	b.said("at the end: queue %d, peak %d", last.AcceptQueue.Length, *last.AcceptQueue.Peak)
	b.Holds(last.AcceptQueue.Length <= 1 && *last.AcceptQueue.Peak == 101, "the peak between two scrapes is not seen")
	w.conserved()
}

// graceful is F6.
func graceful(b *scene) {
	limits := rig.Limits{MaxConnections: 1, AcceptCount: 10}
	server := b.server(limits)
	w := b.agent(port)
	crowd := b.start(demo.BurstOptions{Clients: 5, Rate: 100, Path: hello(3 * time.Second)})
	crowd.connected(5)
	b.busy(server, rig.Truth{Busy: 1, Connections: 1})
	b.Wait(time.Second)
	b.Must(syscall.Kill(server.PID, syscall.SIGTERM))
	b.Within(5*time.Second, "the listener is closed", func() bool { return crowd.result().reset == 4 })
	late := b.start(demo.BurstOptions{Clients: 3}).wait()
	r := crowd.wait()
	b.clients("first five: %s; later three: %s", r, late)
	b.Holds(r.ok == 1 && r.reset == 4, "should be 1 ok, 4 resets")
	b.Holds(late.refused == 3, "the later ones should be refused")
	l := w.until(5*time.Second, "the listener's end", func(l rig.Listener) bool {
		return l.Verdict.Cause == "listener_closed"
	})
	b.said("%s", words(l))
	b.Holds(l.Losses != nil && l.Losses.QueueResets == 4, "queue resets are not 4")
	resets := func() float64 {
		series, err := w.agent.Metrics(b.Ctx)
		b.Must(err)
		return series.Sum("tcpdiag_listener_queue_resets_total")
	}
	before := resets()
	// Tomcat may wake its acceptor by a connection of its own (AbstractEndpoint.unlockAccept).
	w.countedWith(port, 1, r, late)
	b.server(limits)
	b.Wait(2 * time.Second)
	b.said("queue_resets_total %.0f before, %.0f after the restart", before, resets())
	b.Holds(before == 4 && resets() == 4, "the counter should be 4 before and after")
	w.conserved()
}

// addressed is F9: the listener is found with its own family and address.
func addressed(name, address, want string) scenario {
	return scenario{
		name: name, load: "a server on " + want + "; 5 clients, handler 2 s; no timeouts",
		run: func(b *scene) {
			server := b.launch(rig.Limits{}, func(o *rig.TomcatOptions) {
				if address != "" {
					o.Env = append(o.Env, "SERVER_ADDRESS="+address, "MANAGEMENT_SERVER_ADDRESS=127.0.0.1")
				}
			})
			to := strings.Replace(want, "[::]", "127.0.0.1", 1)
			crowd := b.start(demo.BurstOptions{Address: to, Clients: 5, Path: hello(2 * time.Second)})
			crowd.connected(5)
			b.Wait(700 * time.Millisecond)
			l := b.on(b.snapshot(), port)
			b.said("%s: %s", l.Address, words(l))
			b.Holds(l.Address == want, "address %s, should be %s", l.Address, want)
			b.Holds(l.Connections != nil && l.Connections.Accepted == 5, "should have 5 connections")
			b.Holds(l.Process != nil && l.Process.PID == server.PID, "the process is not found")
			b.Holds(l.Connector != nil && l.Connector.MaxThreads != nil && l.Connector.MaxThreads.Value == 200, "the limits are not found")
			b.clients("%s", crowd.wait())
		},
	}
}

// confusedClients are those who behave in other ways than asking and waiting.
func confusedClients() []scenario {
	return []scenario{
		{
			name: "F10", load: "HTTPS: 20 clients of a handler of 5 s and 10 idle ones; no timeouts",
			run: func(b *scene) {
				server := b.server(rig.Limits{Threads: 30, MaxConnections: 100}, func(o *rig.TomcatOptions) { o.TLS = true })
				b.start(demo.BurstOptions{Clients: 20, Path: hello(5 * time.Second), TLS: rig.Unverified()})
				b.start(demo.BurstOptions{Clients: 10, Path: hello(0), TLS: rig.Unverified(), Requests: 2, Think: time.Minute})
				b.busy(server, rig.Truth{Busy: 20, Connections: 31})
				b.Wait(300 * time.Millisecond)
				d := b.snapshot()
				l := b.on(d, port)
				how := ""
				for _, u := range d.Unavailable {
					if strings.Contains(u.How, "Actuator") {
						how = u.How
					}
				}
				b.said("%s, to know more: “%s”", words(l), how)
				b.Holds(how != "", "Actuator is not named")
				b.Holds(l.Connections.Unclassified == 30, "%d unclassified, should be 30", l.Connections.Unclassified)
				b.verdict(l, "ok", "")
				b.clients("20 busy, 10 idle")
			},
		},
		{
			name: "F11-half", load: "30 clients send half a header and wait; threads 4, max-connections 100; no timeouts",
			run: func(b *scene) {
				server := b.server(rig.Limits{Threads: 4, MaxConnections: 100, AcceptCount: 5})
				b.start(demo.BurstOptions{Clients: 30, Rate: 200, HalfHeader: true}).connected(30)
				b.busy(server, rig.Truth{Connections: 31})
				l := b.on(b.snapshot(), port)
				b.said("%s", words(l))
				b.Holds(l.Verdict.Cause != "max_threads", "max_threads although no thread is busy")
				b.Holds(l.Connections.InService <= 4, "%d in service with 4 threads", l.Connections.InService)
				b.clients("30 connected")
			},
		},
		{
			name: "F11-reset", load: "20 clients of a handler of 8 s, 12 reset after 0.5 s, then 4 more; threads = max-connections = 20; no timeouts",
			run: func(b *scene) {
				server := b.server(rig.Limits{Threads: 20, MaxConnections: 20, AcceptCount: 5})
				o := demo.BurstOptions{Clients: 8, Rate: 200, Path: hello(8 * time.Second)}
				b.start(o).connected(8)
				o.Clients, o.ResetAfter = 12, 500*time.Millisecond
				resetting := b.start(o)
				b.busy(server, rig.Truth{Busy: 20, Connections: 20})
				resetting.wait()
				o.Clients, o.ResetAfter = 4, 0
				b.start(o).connected(4)
				l := b.on(b.snapshot(), port)
				b.said("%s", words(l))
				b.verdict(l, "saturated", "max_connections")
				b.Holds(l.Connections.Reset != nil && *l.Connections.Reset == 12, "the 12 slots held by nothing are not found")
				b.clients("8 served, 12 have reset, 4 wait")
			},
		},
		{
			name: "F12", load: "10 clients half-close after the request, handler 3 s; request 30 s",
			run: func(b *scene) {
				server := b.server(rig.Limits{})
				w := b.agent(port)
				r := b.start(demo.BurstOptions{
					Clients: 10, Rate: 200, Path: hello(3 * time.Second), HalfClose: true, RequestTimeout: 30 * time.Second,
				}).wait()
				b.clients("%s", r)
				b.Holds(r.ok == 10, "not all served")
				b.idle(server)
				b.Wait(2 * time.Second)
				l := w.worst(port)
				b.said("%s", words(l))
				b.verdict(l, "ok", "")
				looks := w.on(port)
				gone := looks[len(looks)-1].Losses
				b.Holds(gone == nil || gone.AbandonedRequests == 0, "counted as abandoned")
				b.Holds(l.Connections.ClientClosed == 10, "%d seen as client_closed", l.Connections.ClientClosed)
			},
		},
	}
}

// sharedExecutor is F8.
func sharedExecutor(b *scene) {
	b.standalone(fmt.Sprintf(`<Server port="-1"><Service name="Catalina">
  <Executor name="shared" namePrefix="catalina-exec-" maxThreads="3" minSpareThreads="3"/>
  <Connector port="%d" executor="shared" maxThreads="100"/>
  <Connector port="%d" executor="shared" maxThreads="100"/>
  <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="false"/></Engine>
</Service></Server>`, port, extraPort))
	crowd := b.start(demo.BurstOptions{Clients: 8, Rate: 100, Path: "/slow.jsp?ms=3000"})
	crowd.connected(8)
	b.Wait(500 * time.Millisecond)
	d := b.snapshot("--port", decimal(port), "--port", decimal(extraPort))
	l, other := b.on(d, port), b.on(d, extraPort)
	b.said("8080: %s, maxThreads %s; 8443: **%s**, maxThreads %s", words(l), setting(l.Connector.MaxThreads), other.Verdict.Status, setting(other.Connector.MaxThreads))
	for _, one := range []*rig.Listener{l, other} {
		b.Holds(one.Connector.MaxThreads != nil && one.Connector.MaxThreads.Value == 3, "maxThreads should be the Executor's 3")
	}
	b.verdict(l, "saturated", "max_threads", "max_threads")
	b.stages(l, 3, 5, 0)
	b.clients("%s", crowd.wait())
}
