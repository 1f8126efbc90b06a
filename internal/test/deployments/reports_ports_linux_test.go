package deployments

import (
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// onThePort are reports of ports on which more, or less, is than the server.
func onThePort() []report {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	const connector = `<Connector port="8080" maxThreads="50" acceptCount="50" useInheritedChannel="true"/>`
	return []report{
		{"F", "https://github.com/samhocevar/rinetd/issues/10", "a child has inherited the listening socket of a server that has ended: clients connect, and nobody accepts", func(c *rig.Case) {
			c.AtLast(func() { // the child ends after its parent, for which Program waits
				for deadline := time.Now().Add(10 * time.Second); c.Connects(rig.Port) && time.Now().Before(deadline); {
					time.Sleep(20 * time.Millisecond)
				}
			})
			c.Program("python3", "-c", `import socket, subprocess
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 8080)); s.listen(50); s.set_inheritable(True)
subprocess.Popen(["sleep", "600"], close_fds=False)`)
			c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
			clients := c.Hold(rig.Clients{N: 8, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 8 })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("only sleep has the socket; 8 of 8 clients connected, %d answered", clients.Answered.Load())
			c.Both(rig.Port, "saturated", "warning", "saturated not_accepting").Names("nothing has been accepted for", `"sleep"`).Silent("slow_accept", "raise acceptCount")
		}},
		{"F", "https://github.com/Expensify/Bedrock/pull/1872", "of two instances that share the port (SO_REUSEPORT) the old one hangs: half of the clients get no answer", func(c *rig.Case) {
			first, second := c.Beside("one").Activated(connector, 50), c.Beside("two").Activated(connector, 50)
			c.Until("both have started", func() bool { return first.Says(rig.Port).Name != "" && second.Says(rig.Port).Name != "" })
			c.Answers("127.0.0.1:8080")
			c.Halt(first)
			clients := c.Hold(rig.Clients{N: 40, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 40 })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("pid %d is stopped, pid %d serves; 40 clients connected, %d answered", first.PID, second.PID, clients.Answered.Load())
			c.Both(rig.Port, "saturated jvm_pause", "losing jvm_pause").Names("stopped").Silent("other_process", "belong to pid")
		}},
		{"F", "https://github.com/HelloZeroNet/ZeroNet/issues/1948", "outgoing connections of another program have the server's port as their own", func(c *rig.Case) {
			var listen net.ListenConfig
			to, err := listen.Listen(c.Ctx, "tcp", fmt.Sprintf("0.0.0.0:%d", rig.BackendPort))
			c.Must(err)
			c.AtEnd(func() { _ = to.Close() })
			own := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: rig.Port}, Control: func(_, _ string, raw syscall.RawConn) error {
				return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) })
			}}
			for i := range 20 {
				conn, err := own.DialContext(c.Ctx, "tcp", fmt.Sprintf("127.0.0.%d:%d", i+2, rig.BackendPort))
				c.Must(err)
				c.AtEnd(func() { _ = conn.Close() })
			}
			s := c.Embedded(rig.JVM{}, tomcat("maxConnections=20")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 10, Text: rig.Get("/?ms=600000")})
			c.Until("ten are served", func() bool { return s.Says(rig.Port).Busy >= 10 })
			c.Row.Truth = s.Says(rig.Port).String() + "; 20 connections from port 8080 are outgoing ones of another process"
			c.Both(rig.Port, "ok").Names("10 connections", "20 connections more on this port belong to pid", "outgoing connections from this port").Silent("30 connections", "shutting down")
		}},
		{"L", "https://github.com/mandiant/flare-fakenet-ng/issues/57", "a server that speaks first: 30 clients have its banner and say nothing", func(c *rig.Case) {
			c.Program("python3", "-c", `import socket, threading
s = socket.create_server(("0.0.0.0", 8080), backlog=100); kept = []
while True:
    conn, _ = s.accept(); kept.append(conn); conn.sendall(b"220 mail.example ESMTP\r\n")`)
			c.Answers("127.0.0.1:8080")
			clients := c.Hold(rig.Clients{N: 30})
			c.Until("they have the banner", func() bool { return clients.Answered.Load() >= 30 })
			c.Wait(2 * time.Second)
			c.Row.Truth = "30 connections that the server has greeted, and that wait for nothing"
			c.Both(rig.Port, "ok").Silent("request waits", "requests wait", "given up", "without an answer", "in service")
		}},
		{"L", "https://github.com/vitobotta/hetzner-k3s/issues/87", "a balancer sends the PROXY protocol to a connector that does not speak it: each request is answered with 400", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat()...)
			c.Answers("127.0.0.1:8080")
			c.Haproxy("mode tcp\n bind 127.0.0.1:80\n server app 127.0.0.1:8080 send-proxy")
			clients := c.Hold(rig.Clients{N: 10, Text: rig.Get("/"), Address: "127.0.0.1:80"})
			c.Until("they are rejected", func() bool { return clients.Answered.Load() >= 10 })
			c.Row.Truth = s.Says(rig.Port).String() + "; each request has a status of 400, which nothing outside the server shows"
			c.Both(rig.Port, "ok").Silent("max_threads", "silent")
		}},
	}
}
