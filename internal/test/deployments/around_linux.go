package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// needs skips a case whose program is not installed.
func (b *bench) needs(program string) bool {
	if _, err := exec.LookPath(program); err != nil {
		b.row.Skipped = "not run: " + program + " is not installed"
		return false
	}
	return true
}

func around() []deployment {
	return []deployment{
		{"nginx in front, whose keep-alive pool fills max-connections", func(b *bench) {
			if !b.needs("nginx") {
				return
			}
			s := b.boot("none", options{}, "server.tomcat.max-connections=20", "server.tomcat.accept-count=5")
			b.answers("127.0.0.1:8080")
			b.nginx(`upstream app { server 127.0.0.1:8080; keepalive 64; }
server { listen 80; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } }`)
			b.answers("127.0.0.1:80")
			c := b.hold("tcp", "127.0.0.1:80", 20, get("/hello?ms=2000"), nil)
			b.until("20 had an answer through nginx", func() bool { return c.answered.Load() == 20 })
			b.hold("tcp", "127.0.0.1:8080", 3, get("/hello"), nil)
			time.Sleep(time.Second)
			b.row.Truth = s.says(port).String() + ", kept open by nginx"
			said := b.ask(port)
			b.verdict(said, "saturated keep_alive_idle")
			b.names(said, "a proxy in front of them")
		}},
		{"haproxy that speaks the PROXY protocol to nginx, which closes after each response; 30 clients", func(b *bench) {
			if !b.needs("nginx") || !b.needs("haproxy") {
				return
			}
			s := b.boot("none", options{}, "server.tomcat.threads.max=6", "server.forward-headers-strategy=native")
			b.answers("127.0.0.1:8080")
			b.nginx("server { listen 81 proxy_protocol; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol; location / { proxy_pass http://127.0.0.1:8080; proxy_set_header X-Forwarded-For $proxy_protocol_addr; } }")
			b.haproxy("mode http\n bind 127.0.0.1:80\n server web 127.0.0.1:81 send-proxy-v2")
			b.hold("tcp", "127.0.0.1:80", 30, get("/hello?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 6 && s.says(port).Connections >= 30 })
			b.row.Truth = s.says(port).String() + ", all from nginx"
			said := b.ask(port)
			b.verdict(said, "saturated max_threads")
			b.names(said, `"top_peer"`)
		}},
		{"haproxy in front, whose maxconn holds the requests back", func(b *bench) {
			if !b.needs("haproxy") {
				return
			}
			s := b.boot("none", options{}, "server.tomcat.threads.max=6")
			b.answers("127.0.0.1:8080")
			b.haproxy("mode http\n timeout queue 1m\n bind 127.0.0.1:80\n server app 127.0.0.1:8080 maxconn 4")
			b.hold("tcp", "127.0.0.1:80", 40, get("/hello?ms=60000"), nil)
			b.until("4 are served", func() bool { return s.says(port).Busy == 4 })
			b.row.Truth = s.says(port).String() + "; 36 requests wait in haproxy"
			b.verdict(b.ask(port), "ok")
		}},
		{"envoy in front, 30 clients, its connections to the server those of a pool", func(b *bench) {
			if !b.had(b.envoy()) {
				return
			}
			s := b.boot("none", options{}, "server.tomcat.threads.max=6")
			b.answers("127.0.0.1:8080")
			conf := filepath.Join(b.dir, "envoy.yaml")
			b.must(os.WriteFile(conf, []byte(envoyConfig), 0o600))
			b.program(b.envoy(), "-c", conf, "--disable-hot-restart", "--concurrency", "1", "-l", "error")
			b.answers("127.0.0.1:80")
			b.hold("tcp", "127.0.0.1:80", 30, get("/hello?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 6 && s.says(port).Connections >= 30 })
			b.row.Truth = s.says(port).String() + ", all from envoy"
			said := b.ask(port)
			b.verdict(said, "saturated max_threads")
			b.names(said, `"top_peer"`)
		}},
		{"a port forwarded by nftables to the server's", func(b *bench) {
			if !b.needs("nft") {
				return
			}
			s := b.boot("none", options{}, "server.tomcat.threads.max=6")
			b.answers("127.0.0.1:8080")
			b.must(output(b.ctx, "", "nft", "add table ip forward; add chain ip forward out { type nat hook output priority -100; }; add rule ip forward out tcp dport 80 redirect to :8080"))
			b.cleanup = append(b.cleanup, func() { _ = output(b.ctx, "", "nft", "delete table ip forward") })
			b.hold("tcp", "127.0.0.1:80", 30, get("/hello?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 6 && s.says(port).Connections >= 30 })
			b.row.Truth = s.says(port).String()
			b.verdict(b.ask(port), "saturated max_threads")
		}},
	}
}

// nginx starts it with what its http section is to have.
func (b *bench) nginx(servers string) {
	conf := filepath.Join(b.dir, "nginx.conf")
	b.must(os.WriteFile(conf, fmt.Appendf(nil, `daemon off; error_log %[1]s/nginx.log; pid %[1]s/nginx.pid; user root;
events {}
http { access_log off; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
%[2]s }
`, b.dir, servers), 0o600))
	b.program("nginx", "-c", conf)
}

// envoyConfig has requests to port 80 go to the server, each of those at a time on a
// connection of its own.
const envoyConfig = `static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 80}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: app, timeout: 90s}}]}]}
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
  clusters:
  - name: app
    connect_timeout: 5s
    type: STATIC
    load_assignment: {cluster_name: app, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]}]}
`
