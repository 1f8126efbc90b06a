package deployments

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// report is what somebody has told in public, rebuilt small.
type report struct {
	kind, source, told string
	run                func(*rig.Case)
}

func (r *report) name() string { return fmt.Sprintf("%s · %s · %s", r.kind, r.source, r.told) }

const reportsHead = `# Public reports, rebuilt

Written by ` + "`make prove PROOF=reports`" + `: what people have told in public of servers that did not answer, rebuilt small
on real servers. The letter is the habit of judging that it is a case of: A nobody accepts, B a thread that
hands on has ended, C what clients saw, D resets by the server, E requests of clients that have left, G workers that are
not recognised, F sockets that are not the listener's, H calls that are neither lock nor socket, I short pauses, J queues of the dead, K certain and inferred
values, L protocols, M pools without a name, N a CPU that is not what is short, O a first instant that is over, S settings that the version ignores.

| report | truth | tcpdiag says | so it is |
|---|---|---|---|
`

func TestReports(t *testing.T) {
	rig.Cases(t, "docs/results/reports.md", reportsHead, reports(), func(r report) (string, func(*rig.Case)) { return r.name(), r.run })
}

func reports() []report {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	of := func(list []deployment, name string) func(*rig.Case) {
		for _, d := range list {
			if d.name == name {
				return d.run
			}
		}
		panic("no case " + name)
	}
	const github = "https://github.com/"
	return slices.Concat(onThePort(), ofThreads(), ofClients(), ofStanding(), ofEnded(), ofStopped(), ofNetworks(), ofPaths(), ofOthers(), ofAgain(), ofLeftovers(), ofFilters(), ofUnread(), ofProxies(), []report{
		{"A", github + "spring-projects/spring-boot/issues/55", "the port is bound before the application has started, and curl stalls", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, tomcat("deploy=600000")...)
			c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
			clients := c.Hold(rig.Clients{N: 8, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 8 })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("the application is being started, no acceptor thread yet; 8 of 8 clients connected, %d answered", clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting").Names("waits for connections there", "still being deployed").Silent("slow_accept")
		}},
		{"A", github + "spring-projects/spring-boot/issues/28301", "the acceptor thread waits and takes no request", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxConnections=20", "maxThreads=20", "acceptCount=50")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 32, Text: rig.Get("/?lock=600000")})
			c.Until("all connections are taken", func() bool { return s.Says(rig.Port).Connections >= 20 && s.Says(rig.Port).Busy >= 20 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; the handlers wait for one lock, the acceptor at the limit of connections"
			c.Both(rig.Port, "saturated max_connections").Silent("not_accepting", "slow_accept")
		}},
		{"B", github + "jetty/jetty.project/issues/3861", "unable to create new native thread (there of Jetty, here of Tomcat's poller)", of(owners(), "nproc 42: the poller thread has ended, 60 clients wait")},
		{"B", github + "liveontologies/elk-reasoner/issues/37", "unable to create new native thread, there in the thread that accepts: it has ended", of(kinds(), "the acceptor thread has ended, 30 clients wait")},
		{"C", github + "Alfresco/alfresco-ansible-deployment/issues/758", "the proxy asks ::1, and Tomcat listens on IPv4 alone", of(front(), "bound to 0.0.0.0 (IPv4 alone), asked at ::1")},
		{"C", github + "moby/moby/pull/10900", "the service in the container is bound to localhost", of(front(), "bound to 127.0.0.1, asked at the interface's address")},
		{"C", "https://torrust.com/blog/nf-conntrack-overflow-docker-udp-tracker", "connection tracking overflows, and no log says so", of(front(), "connection tracking is full")},
		{"C", "https://www.redhat.com/es/blog/firewall-exception-testing", "the host's firewall rejects with an ICMP message", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, tomcat()...)
			c.Answers("127.0.0.1:8080")
			nft(c, `table inet firewall { chain input { type filter hook input priority 0; tcp dport 8080 tcp flags syn counter reject with icmp type host-prohibited; }; }`)
			failed := keep(c, func() error { return once("127.0.0.1:8080") })
			c.Until("clients are rejected", func() bool { return failed.Load() > 3 })
			c.Row.Truth = "nftables rejects with ICMP host prohibited: no route to host"
			c.Both(rig.Port, "losing before_listener").Names("the netfilter rule inet firewall input handle")
		}},
		{"D", github + "spring-projects/spring-boot/issues/6669", "an upload above the limit ends in a reset instead of its answer", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat()...)
			c.Answers("127.0.0.1:8080")
			ends := make(chan demo.Outcomes, 1)
			go func() {
				ends <- rig.Arrivals(5, "/", func(o *demo.BurstOptions) { o.Body = 30 << 20 })(c, s)
			}()
			c.Wait(time.Second)
			c.Ask(rig.Port, "--interval", "3s").Verdict("warning server_resets", "losing server_resets").Names("maxSwallowSize")
			out := <-ends
			c.Row.Truth = fmt.Sprintf("maxSwallowSize 2 MiB, uploads of 30 MiB: %d of %d clients reset", out.Of(demo.Reset), out.Total())
			c.Holds(out.Of(demo.Reset) > 0, "no client was reset: %v", out.Count)
		}},
		{"E", github + "modelcontextprotocol/java-sdk/pull/726", "CLOSE_WAIT and Tomcat's connections keep growing: streams that nobody completes", of(claims(), "20 slots of asynchronous requests whose clients have closed")},
		{"E", github + "apolloconfig/apollo/issues/1682", "60 clients of an asynchronous long poll beside 10 threads", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=10")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/?async=1")})
			c.Until("all are held", func() bool { return s.Says(rig.Port).Connections >= 60 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; none has a thread"
			c.Both(rig.Port, "ok").Silent("10 of 10 threads", "max_threads from")
		}},
		{"G", github + "psi-probe/psi-probe/issues/205", "an Executor with a name of its own: the numbers of threads are -1", of(owners(), "an Executor named shop-web-, and a StuckThreadDetectionValve")},
		{"H", github + "moby/moby/issues/44800", "nobody reads the standard output, and a worker is stuck in write(2)", func(c *rig.Case) {
			fifo := filepath.Join(c.Dir, "stdout")
			c.Must(syscall.Mkfifo(fifo, 0o600))
			unread, err := os.OpenFile(fifo, os.O_RDWR, 0)
			c.Must(err)
			c.AtEnd(func() { _ = unread.Close() })
			s := c.Embedded(rig.JVM{Wrap: []string{"sh", "-c", `exec "$0" "$@" >` + fifo}}, tomcat("maxThreads=8")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get("/?print=100000")})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 })
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; one in write(2) on the pipe, the others wait for its lock"
			c.Both(rig.Port, "saturated max_threads").Names("write").Silent("maxThreads from 8", "threads.max from 8")
		}},
		{"I", "https://serverfault.com/questions/175372/tomcat-intermittent-slowdowns-unresponsive-hangs", "Tomcat sleeps, then is busy with what has come: full collections", of(kinds(), "a full old generation: many short pauses (-Xmx40m, SerialGC), 10 threads")},
		{"J", github + "spring-projects/spring-boot/issues/36087", "connections pile up in the queue, and it takes long to recover", of(claims(), "a queue longer than the clients' patience: less room, and more of them are answered")},
		{"K", github + "spring-projects/spring-boot/issues/40957", "tomcat.threads.config.max is -1 in Boot 3.3.0, whatever is configured", func(c *rig.Case) {
			s := c.BootOf("none", "tomcat", "3.3.0", rig.JVM{}, "server.tomcat.threads.max=12", "server.tomcat.mbeanregistry.enabled=true", "management.endpoints.web.exposure.include=*", "management.server.port=8081")
			c.Answers("127.0.0.1:8080")
			c.Answers("127.0.0.1:8081")
			c.Hold(rig.Clients{N: 30, Text: rig.Get("/hello?ms=600000")})
			c.Until("they are connected", func() bool { return s.Says(rig.Port).Connections >= 30 })
			c.Wait(2 * time.Second)
			c.Row.Truth = fmt.Sprintf("server.tomcat.threads.max=12, 30 requests; the MBeans say %s", s.Says(rig.Port))
			c.Both(rig.Port, "saturated max_threads").Names("12 threads").Silent("-1 threads", "of -1", "1 of -1")
		}},
		{"L", "https://tomcat.apache.org/connectors-doc/common_howto/timeouts.html", "a proxy's AJP connections that are only pinged", of(kinds(), "AJP: a proxy's connections that send pings, with room")},
		{"M", github + "jdcloud-api/jdcloud-sdk-java/issues/297", "a client's pool has two connections to a host, which nobody has configured", of(kinds(), "a pool of three without a name, 12 handlers wait for one (the default interval)")},
		{"N", github + "ccarrster/kraplow/issues/62", "the machine has CPU left, and the server does not answer: its threads sleep", of(shares(), "cpu.shares 64 beside eight loops on one CPU, 20 handlers that sleep")},
		{"N", github + "ai-dynamo/dynamo/pull/15080", "many clients within a second at a warm server whose connections are taken", of(kinds(), "bursts of 300 on a warm server with 20 connections, half of the machine's CPU in use")},
		{"S", github + "oceanbase/odc/pull/3201", "after an upgrade of Boot the old names of Tomcat's settings are ignored", of(kinds(), "settings that the Boot version ignores: server.tomcat.max-threads")},
	})
}
