package deployments

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofEnded are reports of servers that end connections without an answer.
func ofEnded() []report {
	return []report{
		{"D", "https://github.com/reactor/reactor-netty/issues/1221", "connection-timeout=20 is 20 ms: the server ends connections whose request takes longer to come", func(c *rig.Case) {
			at := c.Mark()
			var answered, ended atomic.Int64
			serve := func(timeout string) *rig.Server {
				s := c.Boot("none", rig.JVM{}, "server.tomcat.connection-timeout="+timeout)
				c.Answers("127.0.0.1:8080")
				answered.Store(0)
				ended.Store(0)
				for range 10 {
					keep(c, func() error { return later(c.Ctx, 500*time.Millisecond, &answered, &ended) })
				}
				return s
			}
			s := serve("20")
			c.Until("connections are ended", func() bool { return ended.Load() > 20 })
			c.Both(rig.Port, "losing server_resets").Names("a client has 20 ms for its request (server.tomcat.connection-timeout)", "closed by the server").Silent("gave up waiting inside")
			c.Row.Truth = fmt.Sprintf("%s; clients send their request after 500 ms: %d answered, %d ended without an answer", s.Says(rig.Port), answered.Load(), ended.Load())
			c.UnwindTo(at)
			serve("20s")
			c.Until("clients are answered with the step taken", func() bool { return answered.Load() > 50 })
			c.Holds(ended.Load() == 0, "%d connections are ended with the step taken", ended.Load())
			c.Row.Truth += "; with 20s all are answered"
		}},
		{"D", "https://github.com/moby/moby/issues/13847", "a forwarder (docker-proxy) accepts, and ends the connection, as nobody listens where it passes it on to", func(c *rig.Case) {
			c.Program("python3", "-c", `import socket, threading
s = socket.create_server(("0.0.0.0", 8080), backlog=100)
def serve(c):
    try:
        to = socket.create_connection(("127.0.0.1", 9001)); to.sendall(c.recv(10000)); c.sendall(to.recv(10000))
    except OSError: pass
    c.close()
while True:
    conn, _ = s.accept(); threading.Thread(target=serve, args=(conn,)).start()`)
			c.Answers("127.0.0.1:8080")
			var answered, ended atomic.Int64
			for range 10 {
				keep(c, func() error { return later(c.Ctx, 0, &answered, &ended) })
			}
			c.Until("connections are ended", func() bool { return ended.Load() > 20 })
			c.Both(rig.Port, "losing server_resets").Names("where nobody listens at the address that it passes them on to").Silent("maxSwallowSize", "Tomcat")
			c.Row.Truth = fmt.Sprintf("%d answered, %d reset or ended without an answer", answered.Load(), ended.Load())
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=9001")
			c.Until("clients are answered with the step taken", func() bool { return answered.Load() > 20 })
			before, then := answered.Load(), ended.Load()
			c.Until("all are", func() bool { return answered.Load() > before+50 })
			c.Holds(ended.Load() <= then+10, "%d are ended with the step taken", ended.Load()-then)
			c.Row.Truth += "; with a server where it passes them on to all are answered"
		}},
		{"C", "https://github.com/mozilla/server-side-tls/issues/280", "the Connector has TLS 1.2 alone (there as it has no cipher of TLS 1.3): the handshake of who asks for TLS 1.3 fails", func(c *rig.Case) {
			at := c.Mark()
			var answered, ended atomic.Int64
			serve := func(protocols string) *rig.Server {
				s := c.Tomcat(rig.Tomcat10, rig.JVM{}, strings.Replace(tlsConnector(c, `port="8080"`), "<SSLHostConfig>", `<SSLHostConfig protocols="`+protocols+`">`, 1))
				c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
				answered.Store(0)
				ended.Store(0)
				return s
			}
			s := serve("TLSv1.2")
			config := rig.Unverified()
			config.MinVersion = tls.VersionTLS13
			for range 5 {
				keep(c, func() error { return secured(c.Ctx, config, &answered, &ended) })
			}
			c.Until("handshakes fail", func() bool { return ended.Load() > 20 })
			c.Both(rig.Port, "warning server_resets").Names("the TLS handshake of these clients fails", "openssl s_client", "alerted").Silent("maxSwallowSize", "no request is lost")
			said := c.Row.Said
			c.Row.Truth = fmt.Sprintf("%s; clients ask for TLS 1.3: %d answered, the handshake of %d failed", s.Says(rig.Port), answered.Load(), ended.Load())
			c.UnwindTo(at)
			serve("TLSv1.2,TLSv1.3")
			c.Until("a client has been answered", func() bool { return secured(c.Ctx, config, new(atomic.Int64), new(atomic.Int64)) == nil }) // the first may take long
			for range 5 {
				keep(c, func() error { return secured(c.Ctx, config, &answered, &ended) })
			}
			c.Until("clients are answered with the step taken", func() bool { return answered.Load() > 50 })
			c.Holds(ended.Load() == 0, "the handshake of %d fails with the step taken", ended.Load())
			c.Both(rig.Port, "ok").Silent("server_resets")
			c.Row.Said = said
			c.Row.Truth += "; with TLS 1.3 all are answered"
		}},
		{"C", "https://github.com/wiremock/wiremock/issues/229", "clients do not trust the self-signed certificate (there of Jetty): certificate_unknown", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, tlsConnector(c, `port="8080"`))
			c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
			at := c.Mark()
			java := c.Program("java", "-Djava.net.useSystemProxies=false", c.Write("Asks.java", javaAsks))
			var answered, ended atomic.Int64
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				config := &tls.Config{MaxVersion: version, ServerName: "localhost"} //nolint:gosec // 1.2 is meant
				keep(c, func() error { return secured(c.Ctx, config, &answered, &ended) })
			}
			curl := keep(c, func() error { return exec.CommandContext(c.Ctx, "curl", "-sS", "https://localhost:8080/").Run() })
			c.Until("handshakes fail", func() bool { return ended.Load() > 20 && curl.Load() > 5 })
			c.Holds(java.ProcessState == nil, "the Java clients have ended")
			c.Both(rig.Port, "warning").Names("ended the TLS handshake", "openssl s_client", "tls_ended").Silent("a port without it", "maxSwallowSize")
			said := c.Row.Said
			c.Row.Truth = fmt.Sprintf("%s; curl, Go with TLS 1.2 and 1.3, Java's HttpsURLConnection and HttpClient do not trust it: %d answered", s.Says(rig.Port), answered.Load())
			c.UnwindTo(at)
			trust, failed := trusting(c), new(atomic.Int64)
			for range 5 {
				keep(c, func() error { return trust(&answered, failed) })
			}
			c.Until("clients that know the certificate are answered", func() bool { return answered.Load() > 50 })
			c.Holds(failed.Load() == 0, "%d fail with the step taken", failed.Load())
			c.Both(rig.Port, "ok").Silent("tls_ended")
			c.Row.Said = said
			c.Row.Truth += "; those that are given it all are"
		}},
		{"C", "https://github.com/WeiYe-Jing/datax-web/issues/650", "clients ask by https:// on a port without TLS: invalid character found in method name", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			var answered, ended atomic.Int64
			keep(c, func() error { return secured(c.Ctx, rig.Unverified(), &answered, &ended) })
			curl := keep(c, func() error { return exec.CommandContext(c.Ctx, "curl", "-sS", "https://localhost:8080/").Run() })
			c.Until("handshakes fail", func() bool { return ended.Load() > 20 && curl.Load() > 5 })
			c.Both(rig.Port, "warning").Names("asked for TLS on a port without it", "ask by http://", "tls_ended").Silent("openssl s_client")
			c.Row.Truth = fmt.Sprintf("%s; curl and Go ask by https://, Tomcat answers 400: %d answered", s.Says(rig.Port), answered.Load())
		}},
	}
}

// trusting asks with a handshake of its own and reads all; the server's certificate is its authority.
func trusting(c *rig.Case) func(answered, failed *atomic.Int64) error {
	conn, err := (&tls.Dialer{Config: rig.Unverified()}).DialContext(c.Ctx, "tcp", "127.0.0.1:8080")
	c.Must(err)
	defer conn.Close()
	pool := x509.NewCertPool()
	pool.AddCert(conn.(*tls.Conn).ConnectionState().PeerCertificates[0])
	return func(answered, failed *atomic.Int64) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "localhost"}}).DialContext(c.Ctx, "tcp", "127.0.0.1:8080") //nolint:gosec // the default version
		if err == nil {
			defer conn.(*tls.Conn).NetConn().Close() // the server has ended it: no close_notify is reset
			if _, err = io.WriteString(conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"); err == nil {
				_, err = io.ReadAll(conn)
			}
		}
		if err != nil {
			failed.Add(1)
			return err
		}
		answered.Add(1)
		return nil
	}
}

// javaAsks asks with the JDK's two clients.
const javaAsks = `import java.net.URI;
import java.net.http.*;

class Asks {
    public static void main(String[] args) throws Exception {
        URI there = URI.create("https://localhost:8080/");
        HttpClient client = HttpClient.newHttpClient();
        while (true) {
            try { there.toURL().openConnection().getInputStream().close(); } catch (java.io.IOException e) { }
            try { client.send(HttpRequest.newBuilder(there).build(), HttpResponse.BodyHandlers.discarding()); } catch (java.io.IOException e) { }
            Thread.sleep(100);
        }
    }
}
`

// secured asks once with TLS.
func secured(ctx context.Context, config *tls.Config, answered, ended *atomic.Int64) error {
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second}, Config: config}).DialContext(ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		ended.Add(1)
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err = io.WriteString(conn, rig.Get("/")); err == nil {
		_, err = conn.Read(make([]byte, 100))
	}
	if err != nil {
		ended.Add(1)
		return err
	}
	answered.Add(1)
	return nil
}

// ofStopped are reports of servers that accept nobody, for reasons that no setting of theirs has.
func ofStopped() []report {
	return []report{
		{"A", "https://github.com/spring-attic/spring-ide/issues/70", "a debugger's breakpoint has suspended all threads: probes fail", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{VM: []string{"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:5005"}}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.Needs("jdb")
			c.Program("sh", "-c", "(sleep 2; echo suspend; while [ ! -e "+filepath.Join(c.Dir, "resumed")+" ]; do sleep .1; done; echo resume; sleep 600) | jdb -connect com.sun.jdi.SocketAttach:hostname=127.0.0.1,port=5005")
			c.Until("no client has an answer", func() bool { return once("127.0.0.1:8080") == nil && asked(c.Ctx) != nil })
			clients := c.Hold(rig.Clients{N: 12, Text: rig.Get("/")})
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; jdb has suspended its threads: %d of 12 clients answered", s.Says(rig.Port), clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting").Names("as where a debugger has suspended them").Silent("the limit of connections was reached", "maxConnections from", `"max_connections"`)
			c.Write("resumed", "")
			c.Until("all are answered with the step taken", func() bool { return clients.Answered.Load() >= 12 && asked(c.Ctx) == nil })
			c.Row.Truth += "; resumed: all"
		}},
		{"A", "https://github.com/apache/tomcat-jakartaee-migration/issues/43", "after an upgrade the AJP connector lacks its secret: it opens its port, and does not start", func(c *rig.Case) {
			at := c.Mark()
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector port="8080" protocol="HTTP/1.1"/><Connector port="8009" protocol="AJP/1.3"/>`)
			c.Answers("127.0.0.1:8080")
			const ping = "\x12\x34\x00\x01\x0a" // CPing of AJP
			clients := c.Hold(rig.Clients{N: 8, Text: ping, Address: "127.0.0.1:8009"})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 8 })
			c.Wait(3 * time.Second)
			c.Both(8009, "saturated not_accepting").Names("no acceptor thread is there", "secret").Silent("slow_accept", "raise acceptCount")
			c.Row.Truth = fmt.Sprintf("%s; the log: secretRequired, and no secret; %d of 8 connections answered at port 8009", s.Says(8009), clients.Answered.Load())
			c.UnwindTo(at)
			c.Beside("again").Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector port="8080" protocol="HTTP/1.1"/><Connector port="8009" protocol="AJP/1.3" secret="the same as the proxy's"/>`)
			c.Answers("127.0.0.1:8080")
			clients = c.Hold(rig.Clients{N: 8, Text: ping, Address: "127.0.0.1:8009"})
			c.Until("all are answered with the step taken", func() bool { return clients.Answered.Load() >= 8 })
			c.Row.Truth += "; with a secret 8"
		}},
	}
}

// inFar is a program of the clients' network namespace whose log is read for its latest line.
func inFar(c *rig.Case, script string) (last func() string) {
	logs := func() []string {
		all, _ := filepath.Glob(filepath.Join(c.Dir, "ip-*.log"))
		return all
	}
	before := logs()
	c.Program("ip", "netns", "exec", "far", "python3", "-c", script)
	log := slices.DeleteFunc(logs(), func(file string) bool { return slices.Contains(before, file) })[0]
	return func() string {
		text, _ := os.ReadFile(log)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1]
	}
}

// tenClients ask all the time, each time with some seconds of patience; each line is how many were answered
// and how many were not.
func tenClients(address string, patience int, target string) string {
	return fmt.Sprintf(`import socket, threading, time
ok = bad = 0
def ask():
    global ok, bad
    while True:
        try:
            s = socket.create_connection((%q, 8080), timeout=%d); s.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while s.recv(20000): pass
            ok += 1
        except OSError: bad += 1
        print(ok, bad, flush=True); time.sleep(.1)
for i in range(10): threading.Thread(target=ask).start()`, address, patience, target)
}

// ofNetworks are reports of what lies between clients and a server with room.
func ofNetworks() []report {
	return []report{
		{"C", "https://github.com/moby/moby/issues/12565", "a tunnel on the way is narrower than the MTU, and no ICMP says so: small responses arrive, larger ones never", func(c *rig.Case) {
			c.Needs("nft")
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			c.Do("ip", "link", "set", "near", "gso_max_segs", "1")
			c.Do("ip", "netns", "exec", "far", "nft", "add table inet path; add chain inet path prerouting { type filter hook prerouting priority 0; }; add rule inet path prerouting meta length > 1200 drop")
			got := inFar(c, tenClients("10.77.0.1", 8, "/?answer=100"))
			c.Until("clients have given up", func() bool { return strings.HasPrefix(got(), "0 2") })
			c.Both(rig.Port, "warning").Names("nothing acknowledges it", "tcp_mtu_probing=1").Silent("max_threads", "max_connections")
			c.Row.Truth = fmt.Sprintf("%s; packets above 1,200 bytes are lost on the way: answered and given up %s", s.Says(rig.Port), got())
			c.AtEnd(c.SetSysctl(map[string]string{"net/ipv4/tcp_mtu_probing": "1"}))
			c.Until("large responses arrive with the step taken", func() bool { return !strings.HasPrefix(got(), "0 ") })
			c.Row.Truth += "; with tcp_mtu_probing=1 they arrive"
		}},
		{"C", "https://github.com/acassen/keepalived/issues/534", "the virtual address is on no node any more, and both servers run: nobody can connect", func(c *rig.Case) {
			c.AtEnd(c.SetSysctl(map[string]string{"net/ipv4/ip_forward": "0"}))
			far(c, "")
			c.Do("ip", "address", "add", "10.77.0.9/32", "dev", "near")
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "address=10.77.0.9")
			c.Answers("10.77.0.9:8080")
			near, err := net.InterfaceByName("near")
			c.Must(err)
			c.Do("ip", "-n", "far", "neighbour", "replace", "10.77.0.9", "lladdr", near.HardwareAddr.String(), "dev", "out") // as of a router that does not know yet
			got := inFar(c, tenClients("10.77.0.9", 2, "/hello"))
			counts := func() (answered, failed int) {
				_, _ = fmt.Sscan(got(), &answered, &failed)
				return answered, failed
			}
			c.Until("clients are answered", func() bool { n, _ := counts(); return n > 20 })
			c.Do("ip", "address", "del", "10.77.0.9/32", "dev", "near")
			_, before := counts()
			c.Until("clients give up", func() bool { _, failed := counts(); return failed >= before+20 })
			c.Both(rig.Port, "losing before_listener").Names("no interface and no local route of this network namespace has 10.77.0.9", "address_missing").Silent("the place is unknown", "max_threads")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; 10.77.0.9 was removed: %d answered before, %d gave up since", s.Says(rig.Port), answered, failed-before)
			c.Do("ip", "address", "add", "10.77.0.9/32", "dev", "near")
			c.Until("clients are answered with the address back", func() bool { n, _ := counts(); return n > answered+20 })
			_, failed = counts()
			again, _ := counts()
			c.Until("all clients are", func() bool { n, bad := counts(); return n > again+50 && bad <= failed+10 })
			c.Row.Truth += "; with the address back all are answered"
		}},
		{"D", "https://github.com/spring-projects/spring-boot/issues/1223", "uploads that pause for longer than connectionTimeout break off", func(c *rig.Case) {
			far(c, "")
			at := c.Mark()
			s := c.Boot("none", rig.JVM{}, "server.tomcat.connection-timeout=1s")
			c.Answers("127.0.0.1:8080")
			sends := `import socket, threading, time
ok = bad = 0
def send():
    global ok, bad
    while True:
        try:
            s = socket.create_connection(("10.77.0.1", 8080), timeout=8); s.sendall(b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 40000\r\n\r\n")
            for i in range(4): s.sendall(b"x" * 10000); time.sleep(1.5)
            if b" 200" in s.recv(200): ok += 1
            else: bad += 1
        except OSError: bad += 1
        print(ok, bad, flush=True)
for i in range(10): threading.Thread(target=send).start(); time.sleep(.3)`
			got := inFar(c, sends)
			c.Until("uploads break off", func() bool { return strings.HasPrefix(got(), "0 2") })
			c.Both(rig.Port, "warning server_resets", "losing server_resets").Names("Give clients time", "server.tomcat.connection-timeout")
			c.Row.Truth = fmt.Sprintf("%s; uploads that pause for 1.5 s, connectionTimeout 1 s: whole and broken off %s", s.Says(rig.Port), got())
			c.UnwindTo(at)
			c.Boot("none", rig.JVM{}, "server.tomcat.connection-timeout=20s")
			c.Answers("127.0.0.1:8080")
			got = inFar(c, sends)
			c.Until("uploads are whole with the step taken", func() bool { return strings.HasPrefix(got(), "2") && strings.HasSuffix(got(), " 0") })
			c.Row.Truth += "; 20s: " + got()
		}},
		{"D", "https://github.com/jetty/jetty.project/issues/1848", "the server closes before the client has the whole response (SO_LINGER was set; there of Jetty)", func(c *rig.Case) {
			c.Needs("tc")
			far(c, "")
			c.Do("ip", "link", "set", "near", "gso_max_segs", "1")
			c.Do("tc", "qdisc", "replace", "dev", "near", "root", "tbf", "rate", "20mbit", "burst", "3200", "latency", "5s")
			got := inFar(c, `import socket, threading, time
ok = bad = 0
def ask():
    global ok, bad
    while True:
        try:
            s = socket.create_connection(("10.77.0.1", 8080), timeout=8); s.sendall(b"GET /?answer=200 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            n = 0
            while d := s.recv(65536): n += len(d)
            if n > 200000: ok += 1
            else: bad += 1
        except ConnectionRefusedError: pass
        except OSError: bad += 1
        print(ok, bad, flush=True); time.sleep(.1)
for i in range(10): threading.Thread(target=ask).start()`)
			// of at least 60 that end from now on
			ended := func() (whole, cut int) {
				var before, bad int
				_, _ = fmt.Sscan(got(), &before, &bad)
				c.Until("clients have ended", func() bool {
					_, _ = fmt.Sscan(got(), &whole, &cut)
					return whole+cut >= before+bad+60
				})
				return whole - before, cut - bad
			}
			at := c.Mark()
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "connectionLinger=0")
			c.Answers("127.0.0.1:8080")
			whole, cut := ended()
			c.Row.Truth = fmt.Sprintf("%s; connectionLinger=0, answers of 200 KiB over 20 Mbit/s: %d whole, %d cut off", s.Says(rig.Port), whole, cut)
			c.Holds(cut > 0, "no answer was cut off")
			c.Both(rig.Port, "warning server_resets").Names("before they had acknowledged all that it had sent", "SO_LINGER 0", "connectionLinger", "reset_in_answer").Silent("maxSwallowSize", "keepAliveTimeout above")
			said := c.Row.Said
			c.UnwindTo(at)
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "connectionLinger=-1")
			c.Answers("127.0.0.1:8080")
			_, _ = ended() // those that were under way
			whole, cut = ended()
			c.Row.Truth += fmt.Sprintf("; -1: %d and %d", whole, cut)
			c.Holds(cut == 0, "answers are cut off with the step taken: %d of %d", cut, whole+cut)
			c.Ask(rig.Port).Silent("server_resets")
			c.Row.Said = said
		}},
		{"C", "https://github.com/gorilla/websocket/issues/678", "whoever connects from this machine has no more local ports to the server: cannot assign requested address", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.AtEnd(c.SetSysctl(map[string]string{"net/ipv4/ip_local_port_range": "40000 40099"}))
			clients := c.Hold(rig.Clients{N: 100, Text: rig.Get("/?async=1")})
			c.Until("all ports are in use", func() bool { return clients.Connected.Load() >= 99 })
			var last atomic.Value
			failed := keep(c, func() error {
				err := once("127.0.0.1:8080")
				if err != nil {
					last.Store(err.Error())
				}
				return err
			})
			c.Until("new ones fail", func() bool { return failed.Load() > 3 })
			c.Row.Truth = fmt.Sprintf("%s; all others: %v", s.Says(rig.Port), last.Load())
			c.Both(rig.Port, "warning ephemeral_ports").Names("of the 100 local ports", "127.0.0.2").Silent("max_connections", "outgoing connections")
			for range 20 {
				c.Must(once("127.0.0.2:8080")) // another address has all ports for itself
			}
			c.SetSysctl(map[string]string{"net/ipv4/ip_local_port_range": "1024 65535"})
			c.Wait(time.Second)
			before := failed.Load()
			c.Wait(time.Second)
			c.Holds(failed.Load() == before, "clients fail with the wider range, too")
			c.Row.Truth += "; none fails at 127.0.0.2, nor with the wider range"
		}},
	}
}

func asked(ctx context.Context) error {
	var answered, ended atomic.Int64
	return later(ctx, 0, &answered, &ended)
}

// later asks once, a while after it has connected.
func later(ctx context.Context, pause time.Duration, answered, ended *atomic.Int64) error {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	defer conn.Close()
	rig.Wait(ctx, pause)
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err = io.WriteString(conn, rig.Get("/hello")); err == nil {
		var r *http.Response
		if r, err = http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			err = r.Body.Close()
		}
	}
	if err != nil {
		ended.Add(1)
		return err
	}
	answered.Add(1)
	return nil
}
