package main

import (
	"crypto/tls"
	"fmt"
	"time"
)

func (b *bench) tls(settings ...string) []string {
	return append(settings, "server.ssl.key-store="+b.Keystore, "server.ssl.key-store-password="+keystorePassword, "server.ssl.key-store-type=PKCS12")
}

func protocols() []deployment {
	busy := func(b *bench, s *server, n int) {
		b.until("all threads are busy", func() bool { return s.says(port).Busy == n })
		b.row.Truth = s.says(port).String()
	}
	plain := func(clients int) func(*bench) {
		return func(b *bench) {
			s := b.boot("none", options{}, b.tls("server.tomcat.threads.max=10", "management.server.port=8081", "management.server.ssl.enabled=false")...)
			b.answers("127.0.0.1:8081")
			b.hold("tcp", "127.0.0.1:8080", clients, get("/hello?ms=60000"), unverified())
			busy(b, s, 10)
			b.until("all are connected", func() bool { return s.says(port).Connections >= clients })
			said := b.ask(port)
			b.verdict(said, "saturated max_threads", "warning max_threads")
			b.silent(said, "then every request now inside has a thread", "nothing is held up")
		}
	}
	multiplexed := func(scheme string, config *tls.Config, settings ...string) func(*bench) {
		return func(b *bench) {
			if config != nil {
				settings = b.tls(settings...)
			}
			s := b.boot("none", options{}, append(settings, "server.tomcat.threads.max=10", "server.http2.enabled=true")...)
			b.answers("127.0.0.1:8080")
			b.streams(scheme+"://127.0.0.1:8080", 90, config)
			busy(b, s, 10)
			said := b.ask(port)
			b.silent(said, "nothing is held up")
			if len(settings) > 0 && config == nil {
				b.verdict(said, "warning max_threads", "saturated max_threads")
				return
			}
			b.row.Unknown = true
			b.names(said, "not_observable")
		}
	}
	threadless := func(clients int, text string, state string) func(*bench) {
		return func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.threads.max=10")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", clients, text, nil)
			b.until("all are connected, no thread is busy", func() bool {
				return c.connected.Load() == int64(clients) && s.says(port).Connections >= clients && s.says(port).Busy == 0
			})
			b.row.Truth = s.says(port).String() + ", " + state
			said := b.ask(port)
			b.verdict(said, "ok")
			b.silent(said, "10 of 10 threads", "11 of 10", "all 10 threads")
		}
	}
	return []deployment{
		{"HTTPS, plain management port, 40 clients", plain(40)},
		{"HTTPS, plain management port, 75 clients", plain(75)},
		{"HTTPS, 40 clients, nothing to ask", func(b *bench) {
			s := b.boot("none", options{}, b.tls("server.tomcat.threads.max=10", "server.tomcat.mbeanregistry.enabled=true", "management.endpoints.web.exposure.include=health")...)
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 40, get("/hello?ms=60000"), unverified())
			busy(b, s, 10)
			said := b.ask(port)
			b.row.Unknown = true
			b.names(said, "not_observable")
			b.silent(said, "then every request now inside has a thread", "nothing is held up")
		}},
		{"h2c: 90 streams on one connection, Actuator to ask", multiplexed("http", nil, "management.server.port=8081")},
		{"h2c: 90 streams on one connection", multiplexed("http", nil)},
		{"HTTP/2 with TLS: 90 streams on one connection", multiplexed("https", unverified(), "management.endpoints.web.exposure.include=health")},
		{"server-sent events fill max-connections", func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.max-connections=20", "server.tomcat.accept-count=10", "server.tomcat.keep-alive-timeout=3s")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 20, get("/events?ms=300"), nil)
			b.until("all have events", func() bool { return c.answered.Load() == 20 })
			b.hold("tcp", "127.0.0.1:8080", 5, get("/hello"), nil)
			time.Sleep(3 * time.Second) // for events
			b.row.Truth = s.says(port).String() + ", all of them streams"
			said := b.ask(port)
			b.verdict(said, "saturated max_connections")
			b.names(said, `"streaming": 20`)
			b.silent(said, "idle keep-alive", "Lower server.tomcat.keep-alive-timeout", "frees idle connections")
		}},
		{"asynchronous requests ×70", threadless(70, get("/async?ms=60000"), "70 asynchronous requests")},
		{"half-sent headers ×70", threadless(70, "GET /hello HTTP/1.1\r\nHost: loc", "70 half-sent headers")},
		{"clients that reset while they are served", func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.threads.max=10", "server.tomcat.max-connections=50", "server.tomcat.accept-count=20")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 20, get("/hello?ms=60000"), nil)
			b.until("10 are served", func() bool { return s.says(port).Busy == 10 && s.says(port).Connections >= 20 })
			c.reset(20)
			c = b.hold("tcp", "127.0.0.1:8080", 50, get("/hello?ms=60000"), nil)
			b.until("50 slots are taken", func() bool { return c.connected.Load() == 50 && s.says(port).Connections == 50 })
			b.row.Truth = s.says(port).String()
			said := b.ask(port, "--interval", "3s")
			b.verdict(said, "saturated max_connections", "losing max_connections", "saturated max_threads")
			b.silent(said, "0 of 10 threads")
		}},
		{"idle connections all from one proxy", func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.max-connections=50", "server.tomcat.accept-count=10")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 50, get("/hello"), nil)
			b.until("50 had an answer", func() bool { return c.answered.Load() == 50 })
			b.hold("tcp", "127.0.0.1:8080", 4, get("/hello"), nil)
			b.until("nobody is served", func() bool { return s.says(port).Busy == 0 })
			time.Sleep(200 * time.Millisecond)
			b.row.Truth = s.says(port).String()
			said := b.ask(port)
			b.verdict(said, "saturated keep_alive_idle")
			b.names(said, "All 50 connections come from 127.0.0.1")
		}},
		{"server.port=0 and a debugger's port", func(b *bench) {
			s := b.boot("none", options{vm: []string{"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=5005"}}, "server.port=0", "server.tomcat.max-connections=48", "server.tomcat.threads.max=4")
			b.until("it listens", func() bool { return s.says(0).LocalPort > 0 })
			web := s.says(0).LocalPort
			b.hold("tcp", fmt.Sprintf("127.0.0.1:%d", web), 20, get("/hello?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(0).Busy == 4 && s.says(0).Connections >= 20 })
			said := b.ask(5005)
			b.silent(said, `"max_connections"`, "of 48")
			b.row.Truth = s.says(0).String() + "; on 5005 a debugger"
			b.verdict(b.ask(web), "saturated max_threads")
		}},
	}
}
