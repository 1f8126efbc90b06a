package main

import (
	"os"
	"slices"
	"time"
)

// deployment is a case.
type deployment struct {
	name string
	run  func(*bench)
}

func cases() []deployment {
	return slices.Concat(inCode(), protocols(), around(), others(), more(), webSockets(), starved(), shares(), outgoing(), tried(), unusual(), lies(), javas(), inherited())
}

const port = 8080

func inCode() []deployment {
	limits := func(variant string, o options) func(*bench) {
		return func(b *bench) {
			s := b.boot(variant, o)
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 60, get("/hello?ms=60000"), nil)
			b.until("17 connections and 7 threads are in use", func() bool { c := s.says(port); return c.Busy == 7 && c.Connections == 17 })
			b.row.Truth = s.says(port).String() + ", acceptCount 9"
			said := b.ask(port, "--interval", "3s")
			b.verdict(said, "losing max_connections")
			b.silent(said, "restart the server", "from 200 to", "from 8192 to")
		}
	}
	return []deployment{
		{"limits set by a WebServerFactoryCustomizer", limits("customizer", options{})},
		{"setDefaultProperties and @PropertySource", limits("defaults", options{})},
		{"an executor of virtual threads set in code, 400 clients", func(b *bench) {
			s := b.boot("virtual", options{java: modern}, "server.tomcat.threads.max=20")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 400, get("/hello?ms=60000"), nil)
			b.until("all are connected", func() bool { return c.connected.Load() == 400 && s.says(port).Connections >= 400 })
			b.row.Truth = s.says(port).String() + ", all in service"
			said := b.ask(port)
			b.verdict(said, "ok")
			b.silent(said, "of 20 threads busy", "threads.max from", `"max_threads"]`)
		}},
		{"limits lowered over JMX while it runs: 200 to 5 threads, 8192 to 15 connections", func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.threads.min-spare=2")
			b.answers("127.0.0.1:8080")
			s.set("maxThreads", 5)
			s.set("maxConnections", 15)
			b.hold("tcp", "127.0.0.1:8080", 60, get("/hello?ms=60000"), nil)
			b.until("all are in use", func() bool { return s.says(port).Connections >= 15 })
			time.Sleep(time.Second)
			b.row.Truth = s.says(port).String()
			said := b.ask(port, "--interval", "3s")
			b.silent(said, "restart the server", "backlog_clamped")
		}},
		{"only environment variables", func(b *bench) {
			s := b.boot("none", options{env: []string{"SERVER_TOMCAT_THREADS_MAX=6", "SERVER_TOMCAT_MAXCONNECTIONS=40", "SERVER_PORT=8080"}})
			b.threads(s)
		}},
		{"a symbolic link to the jar, started elsewhere, settings in config/*/", func(b *bench) {
			jar, err := b.app(b.ctx, "none", "tomcat", boot)
			b.must(err)
			b.must(os.MkdirAll(b.dir+"/run/config/prod", 0o755))
			b.must(os.WriteFile(b.dir+"/run/config/prod/application.yaml", []byte("server:\n  tomcat:\n    threads: {max: 6}\n"), 0o600))
			b.must(os.Symlink(jar, b.dir+"/current.jar"))
			b.threads(b.java(options{main: []string{"-jar", b.dir + "/current.jar"}, dir: b.dir + "/run"}))
		}},
	}
}

// threads overloads a pool of six and expects just that to be said.
func (b *bench) threads(s *server) {
	const clients, n = 30, 6
	b.answers("127.0.0.1:8080")
	b.hold("tcp", "127.0.0.1:8080", clients, get("/hello?ms=60000"), nil)
	b.until("all threads are busy", func() bool { return s.says(port).Busy == n && s.says(port).Connections >= clients })
	b.row.Truth = s.says(port).String()
	b.verdict(b.ask(port), "saturated max_threads")
}
