package deployments

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofOthers are reports of servers that are no Tomcats, and of who stands in front of one.
func ofOthers() []report {
	return []report{
		{"L", "https://github.com/heroku/vegur/pull/132", "a server that has connections handed to it when data has come (TCP_DEFER_ACCEPT): clients that send theirs late", func(c *rig.Case) {
			c.Program("python3", "-c", `import socket, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 8080)); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30); s.listen(100)
def serve(c):
    if c.recv(1000): c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
    c.close()
while True:
    conn, _ = s.accept(); threading.Thread(target=serve, args=(conn,)).start()`)
			c.Answers("127.0.0.1:8080")
			far(c, "")
			got := inFar(c, `import socket, threading, time
ok = bad = 0
def ask():
    global ok, bad
    while True:
        try:
            s = socket.create_connection(("10.77.0.1", 8080), timeout=5); time.sleep(2.5); s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            if s.recv(1000): ok += 1
            else: bad += 1
        except OSError: bad += 1
        print(ok, bad, flush=True)
for i in range(20): threading.Thread(target=ask).start(); time.sleep(.1)`)
			var answered, failed int
			c.Until("clients are answered", func() bool { _, _ = fmt.Sscan(got(), &answered, &failed); return answered > 20 })
			c.Both(rig.Port, "ok").Silent("SYN queue", "believed", "gave up", "still trying")
			_, _ = fmt.Sscan(got(), &answered, &failed)
			c.Row.Truth = fmt.Sprintf("20 clients send their request after 2.5 s: answered and failed %d %d", answered, failed)
			c.Holds(failed == 0, "%d clients failed", failed)
		}},
		{"L", "https://github.com/haproxy/haproxy/issues/560", "a balancer's checks connect and end with a reset, many times a second, beside clients that are answered", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			visits := c.Visit(2, "http://127.0.0.1:8080/?ms=20")
			for range 10 {
				keep(c, func() error {
					conn, err := (&net.Dialer{}).DialContext(c.Ctx, "tcp", "127.0.0.1:8080")
					if err != nil {
						return err
					}
					_ = conn.(*net.TCPConn).SetLinger(0)
					return conn.Close()
				})
			}
			c.Until("clients are answered", func() bool { return visits.Served.Load() > 50 })
			c.Both(rig.Port, "ok").Silent("server_resets\"", "gave up", "without an answer")
			c.Row.Truth = fmt.Sprintf("%s; a hundred checks a second, %d requests answered, %d failed", s.Says(rig.Port), visits.Served.Load(), visits.Failed.Load())
		}},
		{"G", "https://github.com/Netcracker/KubeMarine/pull/483", "haproxy has as many connections as its maxconn allows, and takes no others", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.Haproxy("mode http\n bind 0.0.0.0:80\n maxconn 20\n server app 127.0.0.1:8080")
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/?ms=600000"), Address: "127.0.0.1:80"})
			c.Wait(4 * time.Second)
			c.Row.Truth = "20 of 20 connections (maxconn of the frontend), 40 wait in the accept queue"
			c.Both(80, "saturated", "saturated not_accepting", "losing", "losing not_accepting").Names("nothing has been accepted for", "haproxy").Silent("slow_accept", "acceptCount from")
		}},
		{"D", "https://github.com/centrifugal/centrifugo/issues/455", "nginx has as many connections as worker_connections allows, and closes those that come on top", func(c *rig.Case) {
			c.Needs("nginx")
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.Program("nginx", "-c", c.Write("nginx.conf", fmt.Sprintf(`daemon off; error_log %[1]s/nginx.log; pid %[1]s/nginx.pid; user root; worker_processes 1;
events { worker_connections 20; }
http { access_log off; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } } }
`, c.Dir)))
			c.Answers("127.0.0.1:80")
			c.Hold(rig.Clients{N: 30, Text: rig.Get("/?ms=600000"), Address: "127.0.0.1:80"})
			c.Wait(2 * time.Second)
			failed := keep(c, func() error { return rejectedAt(c.Ctx, "127.0.0.1:80", "/") })
			c.Until("clients fail", func() bool { return failed.Load() > 20 })
			c.Both(80, "losing server_resets", "warning server_resets").Silent("Tomcat", "maxSwallowSize")
			c.Row.Truth = fmt.Sprintf("worker_connections 20 are used, %d clients were closed or answered with an error", failed.Load())
		}},
		{"A", "https://github.com/jordan-gibbs/hyperresearch/issues/87", "a server with one thread reads from a browser's spare connection, on which nothing comes: all others wait", func(c *rig.Case) {
			c.Write("index.html", "hello")
			c.Program("python3", "-c", `import http.server, os
http.server.HTTPServer(("0.0.0.0", 8080), http.server.SimpleHTTPRequestHandler).serve_forever()`)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 1})
			c.Wait(time.Second)
			clients := c.Hold(rig.Clients{N: 5, Text: rig.Get("/")})
			c.Wait(4 * time.Second)
			c.Row.Truth = fmt.Sprintf("one connection on which nothing comes, read by the only thread; %d of 5 others answered", clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting", "saturated", "losing not_accepting", "losing").Names("nothing has been accepted for").Silent("acceptCount from", "max_threads\"")
		}},
		{"F", "https://github.com/benoitc/gunicorn/issues/1421", "a server with processes: the master has the socket, and all workers are stuck", func(c *rig.Case) {
			c.Program("python3", "-c", `import socket, os, time
s = socket.create_server(("0.0.0.0", 8080), backlog=50)
for i in range(3):
    if os.fork() == 0:
        while True:
            c, _ = s.accept(); c.recv(1000); time.sleep(600)
os.wait()`)
			c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
			c.Hold(rig.Clients{N: 20, Text: rig.Get("/")})
			c.Wait(4 * time.Second)
			c.Row.Truth = "three worker processes, each with one request; 17 connections wait"
			c.Both(rig.Port, "saturated not_accepting", "saturated", "losing not_accepting").Names("nothing has been accepted for").Silent("slow_accept", "raise acceptCount")
		}},
		{"H", "https://github.com/noyainrain/meetling/issues/25", "somebody has attached gdb to the hanging server, and left it so", func(c *rig.Case) {
			c.Needs("gdb")
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.Program("gdb", "-q", "-batch", "-p", fmt.Sprint(s.PID), "-ex", "shell sleep 600")
			c.Until("no client has an answer", func() bool { return once("127.0.0.1:8080") == nil && asked(c.Ctx) != nil })
			c.Hold(rig.Clients{N: 12, Text: rig.Get("/")})
			c.Wait(3 * time.Second)
			c.Row.Truth = "all threads are stopped by ptrace (state t)"
			c.Both(rig.Port, "saturated jvm_pause", "losing jvm_pause").Names("stopped").Silent("not_accepting\"", "max_threads\"")
		}},
		{"I", "https://github.com/pinpoint-apm/pinpoint/issues/6856", "a heap dump is written: the application stands still meanwhile", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{VM: []string{"-Xmx400m"}}, "protocol=HTTP/1.1", "port=8080", "maxThreads=10")
			c.Answers("127.0.0.1:8080")
			kept := c.Hold(rig.Clients{N: 1, Text: rig.Get("/?hoard=22")})
			c.Until("the heap is large", func() bool { return kept.Answered.Load() == 1 })
			c.Visit(8, "http://127.0.0.1:8080/?ms=50")
			c.Program("sh", "-c", fmt.Sprintf("while :; do rm -f %[2]s; jcmd %[1]d GC.heap_dump -all %[2]s >/dev/null; done", s.PID, filepath.Join(c.Dir, "heap.hprof")))
			c.Wait(6 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; jcmd GC.heap_dump in a loop"
			c.Both(rig.Port, "warning jvm_pause", "saturated jvm_pause", "losing jvm_pause").Names("stood still").Silent(`"not_reading"`, `"not_accepting"`, "maxThreads from 10")
		}},
		{"I", "https://github.com/trinodb/trino/issues/13660", "ZGC with too small a heap: threads wait for memory (allocation stalls), without a pause", func(c *rig.Case) {
			log := filepath.Join(c.Dir, "gc.log")
			s := c.Embedded(rig.JVM{VM: []string{"-XX:+UseZGC", "-Xmx96m", "-Xlog:gc*:file=" + log}}, "protocol=HTTP/1.1", "port=8080", "maxThreads=10")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 1, Text: rig.Get("/?keep=40000")})
			c.Wait(2 * time.Second)
			c.Visit(40, "http://127.0.0.1:8080/?litter=20000")
			c.Wait(8 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; %d allocation stalls by the collector's log", s.Says(rig.Port), occurrences(log, "Allocation Stall"))
			c.Both(rig.Port, "saturated max_threads", "saturated cpu_saturated", "saturated jvm_pause").Silent("maxThreads from 10")
		}},
		{"M", "https://github.com/apache/solr/pull/4236", "permits that are never given back (an exception): all threads wait for one, and nothing is in flight", func(c *rig.Case) {
			backend := &rig.Backend{Address: fmt.Sprintf("127.0.0.1:%d", rig.BackendPort)}
			backend.Serve(c)
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=8")
			c.Answers("127.0.0.1:8080")
			lost := c.Hold(rig.Clients{N: 3, Text: rig.Get(fmt.Sprintf("/?to=%d&three=1&hold=60000&timeout=300", rig.BackendPort))})
			c.Until("three permits are lost", func() bool { return lost.Answered.Load() >= 3 })
			c.Hold(rig.Clients{N: 24, Text: rig.Get(fmt.Sprintf("/?to=%d&three=1&hold=10", rig.BackendPort))})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; all wait for one of three permits, which no one has"
			c.Both(rig.Port, "saturated max_threads").Names("lock").Silent("maxThreads from 8", "connection_pool\"", "downstream\"")
		}},
		{"A", "https://github.com/jetty/jetty.project/issues/7515", "the count of connections has lost its way: the limit is reached, and few are there (there of Jetty)", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxConnections=20", "acceptCount=30", "taken=18")
			c.Answers("127.0.0.1:8080")
			clients := c.Hold(rig.Clients{N: 12, Text: rig.Get("/?ms=600000")})
			c.Wait(4 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; 18 of them are none: 12 of 12 clients connected, %d answered, 2 in service", s.Says(rig.Port), clients.Answered.Load())
			c.Both(rig.Port, "saturated max_connections", "saturated").Silent("maxConnections from 20", "slow_accept", "Tomcat holds 20 of 20")
		}},
		{"H", "https://github.com/jetty/jetty.project/issues/7120", "clients do not read their responses: the threads stand in the write (there of Jetty)", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=8")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			inFar(c, `import socket, time
kept = []
for i in range(24):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096); s.connect(("10.77.0.1", 8080))
    s.sendall(b"GET /?answer=20000 HTTP/1.1\r\nHost: x\r\n\r\n"); kept.append(s)
print("0 0", flush=True); time.sleep(600)`)
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 && s.Says(rig.Port).Connections >= 24 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 8 clients read nothing of a response of 20 MB"
			c.Both(rig.Port, "saturated max_threads").Names("Let a proxy in front buffer the responses, or send less: 8 threads wait for clients that do not take their responses").Silent("wait for a lock")
		}},
	}
}

// occurrences is how often a file has a text.
func occurrences(file, text string) int {
	all, _ := os.ReadFile(file)
	return strings.Count(string(all), text)
}
