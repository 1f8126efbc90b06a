package deployments

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofProxies are reports of proxies in front of a server, and of an address translation.
func ofProxies() []report {
	return []report{
		{"M", "https://github.com/openstreetmap/operations/issues/335", "nginx has no local port left towards its upstream: its clients have an error at once", func(c *rig.Case) {
			const ports = 30
			c.AtEnd(c.SetSysctl(map[string]string{"net.ipv4.ip_local_port_range": fmt.Sprintf("40000 %d", 40000+ports-1)}))
			far(c, "")
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.Nginx(`server { listen 80; location / { proxy_pass http://127.0.0.1:8080/?ms=600000; } }`)
			inFar(c, `import socket, time
kept = []
for i in range(40):
    s = socket.create_connection(("10.77.0.1", 80)); s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"); kept.append(s)
time.sleep(600)`)
			counts := statuses(c, "10.77.0.1:80")
			c.Until("clients fail", func() bool { _, failed := counts(); return failed >= 30 })
			c.Both(80, "warning ephemeral_ports").Names("30 of 30 local ports are in use towards 127.0.0.1:8080")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%d local ports, as many requests of nginx; of the others %d answered with 200, %d with 500 or 502", ports, answered, failed)
		}},
		{"B", "https://github.com/ZoeyVid/NPMplus/issues/2575", "the worker of nginx computes all the time, and clients wait (there a module's loop, here a regular expression)", func(c *rig.Case) {
			c.Nginx(`server { listen 80; location / { if ($request_uri ~ "^/(a+)+$") { return 204; } return 200 "ok"; } }`)
			for range 60 {
				keep(c, func() error { return rejectedAt(c.Ctx, "127.0.0.1:80", "/"+strings.Repeat("a", 40)+"!") })
			}
			failed := keep(c, func() error { return rejectedAt(c.Ctx, "127.0.0.1:80", "/") })
			c.Until("clients fail", func() bool { return failed.Load() >= 3 })
			c.Both(80, "warning", "saturated", "saturated not_accepting", "losing", "losing not_accepting").Silent("jvm_pause\"", "slow_accept\"", "are stopped")
			c.Row.Truth = fmt.Sprintf("its only worker computes, %d other clients failed", failed.Load())
		}},
		{"C", "https://github.com/cloudfoundry-attic/cf-release/pull/758", "SYNs of clients behind an address translation are of an earlier time than the one in TIME_WAIT of their port, and are not answered (there with tcp_tw_recycle)", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			counts := translated(c)
			c.Until("clients fail", func() bool { n, failed := counts(); return failed >= 2 && n > 60 })
			c.Both(rig.Port, "losing before_listener").Names("PAWSTimewait", "as where hosts share an address").Silent(": \"syn_backlog\"", "max_threads\"", "the place is unknown")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; two hosts behind one address and ten ports: answered and timed out %d %d, others came in a second later from another port", s.Says(rig.Port), answered, failed)
		}},
		{"L", "https://github.com/Hubs-Foundation/hubs-cloud/issues/376", "a proxy asks by http:// on a port of nginx with TLS: each request is answered with 400", func(c *rig.Case) {
			c.Do("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=localhost", "-keyout", filepath.Join(c.Dir, "key.pem"), "-out", filepath.Join(c.Dir, "cert.pem"))
			c.Nginx(fmt.Sprintf(`server { listen 443 ssl; ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; location / { return 200 "ok"; } }`, c.Dir))
			failed := keep(c, func() error { return rejectedAt(c.Ctx, "127.0.0.1:443", "/") })
			c.Until("clients fail", func() bool { return failed.Load() >= 10 })
			c.Both(443, "ok").Silent("alerts_unknown", "server_resets")
			c.Row.Truth = fmt.Sprintf("%d of %d clients have a status of 400, which nothing outside the server shows", failed.Load(), failed.Load())
			c.Row.Unknown = true // what the server answers is not read
		}},
		{"L", "https://github.com/yaoweibin/nginx_upstream_check_module/issues/62", "a health check asks by http:// on a port with TLS: each is closed behind an alert (there of Netty, here of Jetty)", func(c *rig.Case) {
			c.BootOf("none", "jetty", rig.BootVersion, rig.JVM{}, "server.ssl.key-store="+c.KeystoreFile(), "server.ssl.key-store-password="+rig.KeystorePassword)
			c.Answers("127.0.0.1:8080")
			failed := keep(c, func() error { return rejected(c.Ctx, "/") })
			c.Until("checks fail", func() bool { return failed.Load() >= 10 })
			c.Wait(3 * time.Second)
			c.Both(rig.Port, "ok").Names("alerts_unknown", "the length of a TLS alert").Silent("server_resets\"")
			c.Row.Truth = fmt.Sprintf("%d checks had an alert and no answer", failed.Load())
			c.Row.Unknown = true // whether it is an alert is not read, and the settings are not Tomcat's
		}},
	}
}

// statuses has a client of the other network namespace ask again and again; it returns how many had a status of 200, and how many
// had another or none.
func statuses(c *rig.Case, address string) (counts func() (answered, failed int)) {
	host, port, _ := net.SplitHostPort(address)
	got := inFar(c, fmt.Sprintf(`import socket, time
ok = bad = 0
while True:
    try:
        s = socket.create_connection((%q, %s), timeout=3); s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        if s.recv(20000).startswith(b"HTTP/1.1 200"): ok += 1
        else: bad += 1
        s.close()
    except OSError: bad += 1
    print(ok, bad, flush=True); time.sleep(.05)`, host, port))
	return func() (answered, failed int) {
		_, _ = fmt.Sscan(got(), &answered, &failed)
		return answered, failed
	}
}

// translated has clients of two addresses come from one, and from ten ports, as soon as these are used no more; the translator
// drops what is of no connection. It returns how many had an answer, and how many had none within three seconds.
func translated(c *rig.Case) (counts func() (answered, failed int)) {
	router(c, 60)
	c.Do("ip", "-n", "far", "address", "add", "10.78.0.3/24", "dev", "out")
	in := func(args ...string) { c.Do(append([]string{"ip", "netns", "exec", "path"}, args...)...) }
	in("nft", "add table ip shared; add chain ip shared out { type nat hook postrouting priority 100; }; add rule ip shared out oifname out meta l4proto tcp masquerade to :5000-5009; add chain ip shared in { type filter hook input priority 0; }; add rule ip shared in ct state invalid drop")
	in("sh", "-c", "echo 1 >/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait; echo 1 >/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close")
	got := inFar(c, `import socket, threading, time
ok = bad = 0
def ask(host):
    global ok, bad
    while True:
        try:
            s = socket.create_connection(("10.77.0.1", 8080), timeout=3, source_address=(host, 0)); s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            n = 0
            while d := s.recv(20000): n += len(d)
            if n > 0: ok += 1
            else: bad += 1
            s.close()
        except OSError: bad += 1
        print(ok, bad, flush=True); time.sleep(.3)
for host in ("10.78.0.2", "10.78.0.3") * 2: threading.Thread(target=ask, args=(host,)).start()`)
	return func() (answered, failed int) {
		_, _ = fmt.Sscan(got(), &answered, &failed)
		return answered, failed
	}
}
