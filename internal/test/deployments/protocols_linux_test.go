package deployments

import (
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// secure is the Spring Boot application with TLS.
func secure(settings ...string) rig.Start {
	return func(c *rig.Case) *rig.Server { return c.Boot("none", rig.JVM{}, tlsSettings(c, settings...)...) }
}

func tlsSettings(c *rig.Case, settings ...string) []string {
	return slices.Concat(settings, []string{"server.ssl.key-store=" + c.KeystoreFile(), "server.ssl.key-store-password=" + rig.KeystorePassword, "server.ssl.key-store-type=PKCS12"})
}

// protocols are what a connector speaks, and what its clients do with it.
func protocols() []deployment {
	encrypted := func(n int) []rig.Clients {
		return []rig.Clients{{N: n, Text: rig.Get("/hello?ms=60000"), TLS: rig.Unverified()}}
	}
	https := func(clients int) rig.Overload {
		return rig.Overload{
			Name: fmt.Sprintf("HTTPS, plain management port, %d clients", clients), Address: "127.0.0.1:8081",
			Server:  secure("server.tomcat.threads.max=10", "management.server.port=8081", "management.server.ssl.enabled=false"),
			Clients: encrypted(clients), Full: rig.Full{Busy: 10, Connections: clients},
			Says: rig.Says{
				Verdict: []string{"saturated max_threads", "warning max_threads"},
				Silent:  []string{"then every request now inside has a thread", "nothing is held up"},
			},
		}
	}
	streams := func(name string, server rig.Start, scheme string, config *tls.Config, says rig.Says) rig.Overload {
		says.Silent = []string{"nothing is held up"}
		return rig.Overload{
			Name: name, Server: server, Full: rig.Full{Busy: 10}, Says: says,
			Front: []func(*rig.Case){func(c *rig.Case) { c.Streams(scheme+"://127.0.0.1:8080", 90, config) }},
		}
	}
	unseen := rig.Says{Unknown: true, Names: []string{"not_observable"}}
	threadless := func(name, text, state string) rig.Overload {
		return rig.Overload{
			Name: name, Server: rig.JVM{}.Boot("none", "server.tomcat.threads.max=10"),
			Clients: []rig.Clients{{N: 70, Text: text}}, Full: rig.Full{Connected: 70, Connections: 70}, Note: ", " + state,
			Says: rig.Says{Verdict: []string{"ok"}, Silent: []string{"10 of 10 threads", "11 of 10", "all 10 threads"}},
		}
	}
	return slices.Concat(data(
		https(40), https(75),
		rig.Overload{
			Name:    "HTTPS, 40 clients, nothing to ask",
			Server:  secure("server.tomcat.threads.max=10", "server.tomcat.mbeanregistry.enabled=true", "management.endpoints.web.exposure.include=health"),
			Clients: encrypted(40), Full: rig.Full{Busy: 10},
			Says: rig.Says{Unknown: true, Names: []string{"not_observable"}, Silent: []string{"then every request now inside has a thread", "nothing is held up"}},
		},
		streams("h2c: 90 streams on one connection, Actuator to ask", rig.JVM{}.Boot("none", "management.server.port=8081", "server.tomcat.threads.max=10", "server.http2.enabled=true"),
			"http", nil, rig.Says{Verdict: []string{"warning max_threads", "saturated max_threads"}}),
		streams("h2c: 90 streams on one connection", rig.JVM{}.Boot("none", "server.tomcat.threads.max=10", "server.http2.enabled=true"), "http", nil, unseen),
		streams("HTTP/2 with TLS: 90 streams on one connection", secure("management.endpoints.web.exposure.include=health", "server.tomcat.threads.max=10", "server.http2.enabled=true"),
			"https", rig.Unverified(), unseen),
	), []deployment{
		{"server-sent events fill max-connections", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.max-connections=20", "server.tomcat.accept-count=10", "server.tomcat.keep-alive-timeout=3s")
			c.Answers("127.0.0.1:8080")
			w := c.Hold(rig.Clients{N: 20, Text: rig.Get("/events?ms=300")})
			c.Until("all have events", func() bool { return w.Answered.Load() == 20 })
			c.Hold(rig.Clients{N: 5, Text: rig.Get("/hello")})
			c.Wait(3 * time.Second) // for events
			c.Row.Truth = s.Says(rig.Port).String() + ", all of them streams"
			c.Ask(rig.Port).Verdict("saturated max_connections").Names(`"streaming": 20`).
				Silent("idle keep-alive", "Lower server.tomcat.keep-alive-timeout", "frees idle connections")
		}},
	}, data(
		threadless("asynchronous requests ×70", rig.Get("/async?ms=60000"), "70 asynchronous requests"),
		threadless("half-sent headers ×70", "GET /hello HTTP/1.1\r\nHost: loc", "70 half-sent headers"),
	), []deployment{
		{"clients that reset while they are served", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.threads.max=10", "server.tomcat.max-connections=50", "server.tomcat.accept-count=20")
			c.Answers("127.0.0.1:8080")
			w := c.Hold(rig.Clients{N: 20, Text: rig.Get("/hello?ms=60000")})
			c.Until("10 are served", func() bool { return s.Says(rig.Port).Busy == 10 && s.Says(rig.Port).Connections >= 20 })
			w.Reset(20)
			w = c.Hold(rig.Clients{N: 50, Text: rig.Get("/hello?ms=60000")})
			c.Until("50 slots are taken", func() bool { return w.Connected.Load() == 50 && s.Says(rig.Port).Connections == 50 })
			c.Row.Truth = s.Says(rig.Port).String()
			c.Ask(rig.Port, "--interval", "3s").Verdict("saturated max_connections", "losing max_connections", "saturated max_threads").Silent("0 of 10 threads")
		}},
		{"idle connections all from one proxy", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.max-connections=50", "server.tomcat.accept-count=10")
			c.Answers("127.0.0.1:8080")
			w := c.Hold(rig.Clients{N: 50, Text: rig.Get("/hello")})
			c.Until("50 had an answer", func() bool { return w.Answered.Load() == 50 })
			c.Hold(rig.Clients{N: 4, Text: rig.Get("/hello")})
			c.Until("nobody is served", func() bool { return s.Says(rig.Port).Busy == 0 })
			c.Wait(200 * time.Millisecond)
			c.Row.Truth = s.Says(rig.Port).String()
			c.Ask(rig.Port).Verdict("saturated keep_alive_idle").Names("All 50 connections come from 127.0.0.1")
		}},
		{"server.port=0 and a debugger's port", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{VM: []string{"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=5005"}}, "server.port=0", "server.tomcat.max-connections=48", "server.tomcat.threads.max=4")
			c.Until("it listens", func() bool { return s.Says(0).LocalPort > 0 })
			web := s.Says(0).LocalPort
			c.Hold(rig.Clients{Address: fmt.Sprintf("127.0.0.1:%d", web), N: 20, Text: rig.Get("/hello?ms=60000")})
			c.Until("all threads are busy", func() bool { return s.Says(0).Busy == 4 && s.Says(0).Connections >= 20 })
			c.Ask(5005).Silent(`"max_connections"`, "of 48")
			c.Row.Truth = s.Says(0).String() + "; on 5005 a debugger"
			c.Ask(web).Verdict("saturated max_threads")
		}},
	})
}
