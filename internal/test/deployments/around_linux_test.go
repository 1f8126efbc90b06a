package deployments

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// around are servers with something in front of them.
func around() []deployment {
	boot := rig.JVM{}.Boot("none", "server.tomcat.threads.max=6")
	behind := func(name, note string, server rig.Start, front ...func(*rig.Case)) rig.Overload {
		o := six(name, server)
		o.Front, o.Note, o.Says.Names = front, note, []string{`"top_peer"`}
		o.Clients = []rig.Clients{{Address: "127.0.0.1:80", N: 30, Text: rig.Get("/hello?ms=60000")}}
		return o
	}
	forwarded := behind("a port forwarded by nftables to the server's", "", boot, (*rig.Case).Forwarded)
	forwarded.Says.Names = nil
	return slices.Concat([]deployment{
		{"nginx in front, whose keep-alive pool fills max-connections", func(c *rig.Case) {
			c.Needs("nginx")
			s := c.Boot("none", rig.JVM{}, "server.tomcat.max-connections=20", "server.tomcat.accept-count=5")
			c.Answers("127.0.0.1:8080")
			c.Nginx(`upstream app { server 127.0.0.1:8080; keepalive 64; }
server { listen 80; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } }`)
			w := c.Hold(rig.Clients{Address: "127.0.0.1:80", N: 20, Text: rig.Get("/hello?ms=2000")})
			c.Until("20 had an answer through nginx", func() bool { return w.Answered.Load() == 20 })
			c.Hold(rig.Clients{N: 3, Text: rig.Get("/hello")})
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + ", kept open by nginx"
			c.Ask(rig.Port).Verdict("saturated keep_alive_idle").Names("a proxy in front of them")
		}},
	}, data(
		behind("haproxy that speaks the PROXY protocol to nginx, which closes after each response; 30 clients", ", all from nginx",
			rig.JVM{}.Boot("none", "server.tomcat.threads.max=6", "server.forward-headers-strategy=native"),
			func(c *rig.Case) {
				c.Nginx("server { listen 81 proxy_protocol; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol; location / { proxy_pass http://127.0.0.1:8080; proxy_set_header X-Forwarded-For $proxy_protocol_addr; } }")
				c.Haproxy("mode http\n bind 127.0.0.1:80\n server web 127.0.0.1:81 send-proxy-v2")
			}),
		rig.Overload{
			Name: "haproxy in front, whose maxconn holds the requests back", Server: boot,
			Front: []func(*rig.Case){func(c *rig.Case) {
				c.Haproxy("mode http\n timeout queue 1m\n bind 127.0.0.1:80\n server app 127.0.0.1:8080 maxconn 4")
			}},
			Clients: []rig.Clients{{Address: "127.0.0.1:80", N: 40, Text: rig.Get("/hello?ms=60000")}},
			Full:    rig.Full{Busy: 4}, Note: "; 36 requests wait in haproxy",
			Says: rig.Says{Verdict: []string{"ok"}},
		},
		behind("envoy in front, 30 clients, its connections to the server those of a pool", ", all from envoy", boot, (*rig.Case).Envoyed),
		forwarded,
	))
}

// inherited are servers whose listening socket somebody else has opened: its backlog is
// that of who did, whatever acceptCount says.
func inherited() []deployment {
	const connector = `<Connector port="8080" maxThreads="6" acceptCount="50" useInheritedChannel="true"/>`
	opened := slow("a listening socket inherited as descriptor 0 (useInheritedChannel), opened with a backlog of 7",
		func(c *rig.Case) *rig.Server { return c.Activated(connector, 7) })
	opened.Note, opened.Says.Names, opened.Says.Silent = ", acceptCount 50, a backlog of 7", []string{"in force is 7"}, []string{"backlog_clamped", "somaxconn=50"}
	return append(data(opened), deployment{"two Tomcats that share a port (SO_REUSEPORT), each with 6 threads", func(c *rig.Case) {
		first, second := c.Beside("one").Activated(connector, 50), c.Beside("two").Activated(connector, 50)
		c.Answers("127.0.0.1:8080")
		c.Hold(rig.Clients{N: 60, Text: rig.Get("/slow.jsp?ms=60000")})
		c.Until("all threads are busy", func() bool {
			one, two := first.Says(rig.Port), second.Says(rig.Port)
			return one.Busy == 6 && two.Busy == 6 && one.Connections+two.Connections >= 60
		})
		c.Row.Truth = first.Says(rig.Port).String() + "; and " + second.Says(rig.Port).String()
		c.Ask(rig.Port).Verdict("saturated max_threads").Names("maxThreads from 6 to 30 in each of the 2 processes that share the port")
	}})
}
