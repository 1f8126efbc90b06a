package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// tried are what somebody has tried who wanted a server to take more, or what a server
// does whose handlers wait for something unusual.
func tried() []deployment {
	const waits = 20 // threads
	pool := []string{"protocol=HTTP/1.1", "port=8080", fmt.Sprint("maxThreads=", waits), fmt.Sprint("minSpareThreads=", waits)}
	flags := []string{"--max-threads", fmt.Sprint(waits), "--max-connections", "8192", "--interval", "3s"}
	return []deployment{
		{"maxConnections -1 and acceptCount 0 in server.xml, 300 clients", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, `<Connector port="8080" maxThreads="6" maxConnections="-1" acceptCount="0"/>`)
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 300, get("/slow.jsp?ms=60000"), nil)
			b.until("all are connected", func() bool { return s.says(port).Busy == 6 && c.connected.Load() == 300 })
			b.row.Truth = s.says(port).String() + ", 300 clients connected"
			said := b.ask(port)
			b.verdict(said, "saturated max_threads")
			b.silent(said, "maxConnections from", "backlog_clamped")
		}},
		{"two connectors on one port, 127.0.0.1 and ::1, one of them full", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, `<Connector address="127.0.0.1" port="8080" maxThreads="6" maxConnections="60"/><Connector address="::1" port="8080" maxThreads="40"/>`)
			b.answers("127.0.0.1:8080")
			b.answers("[::1]:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 30, get("/slow.jsp?ms=60000"), nil)
			b.until("all are connected", func() bool { return c.connected.Load() == 30 })
			b.row.Truth = s.says(0).String() + " on 127.0.0.1, 30 clients there; nobody on ::1"
			said := b.ask(port)
			for i := range said.document.Listeners {
				l := &said.document.Listeners[i]
				if got := l.Verdict.Status + " " + l.Verdict.Cause; l.Address == "[::1]:8080" {
					b.holds(got == "ok ", "of ::1 %q", got)
				} else {
					b.row.Said = got + ": " + l.Verdict.Summary
					b.holds(got == "saturated max_threads", "of 127.0.0.1 %q", got)
				}
			}
		}},
		{"a handler that asks for the client's name (enableLookups) while the name server does not answer", func(b *bench) {
			b.deafNameServer()
			s := b.embedded(options{}, append(pool, "enableLookups=true")...)
			b.answers("127.0.0.1:8080")
			b.must(output(b.ctx, "", "ip", "address", "replace", "10.88.0.1/32", "dev", "lo"))
			b.hold("tcp", "10.88.0.1:8080", 60, get("/?lookup=1&ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == waits && s.says(port).Connections >= 60 })
			b.row.Truth = s.says(port).String() + "; in poll(2) for an answer of the name server"
			said := b.ask(port, flags...)
			b.verdict(said, "saturated max_threads", "saturated downstream")
			if s.says(port).Busy < waits {
				b.must(errors.New("the load ended by itself"))
			}
		}},
		{"handlers that wait for one lock (synchronized)", func(b *bench) {
			s := b.embedded(options{}, pool...)
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 60, get("/?lock=600000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == waits && s.says(port).Connections >= 60 })
			b.row.Truth = s.says(port).String() + "; one sleeps with the lock, the others wait for it"
			said := b.ask(port, flags...)
			b.verdict(said, "saturated max_threads")
			b.names(said, "waiting_inside")
		}},
		{"virtual threads pinned by synchronized, Java 21", func(b *bench) {
			b.pinned(b.wheel(java21), true)
		}},
		{"virtual threads that wait in synchronized, Java 25", func(b *bench) {
			b.pinned(modern, false)
		}},
		{"Spring WebFlux on Netty, 60 handlers that wait without a thread", func(b *bench) {
			s := b.flux()
			c := b.hold("tcp", "127.0.0.1:8080", 60, get("/waits?ms=60000"), nil)
			b.until("all are connected", func() bool { return c.connected.Load() == 60 })
			b.row.Truth = s.says(port).String() + "; 60 requests in service, none waits for a thread"
			said := b.ask(port)
			b.verdict(said, "ok")
			b.silent(said, "max_threads", "of 200")
			b.row.Unknown = true
		}},
		{"Spring WebFlux on Netty, 60 handlers that block its event loops", func(b *bench) {
			s := b.flux()
			c := b.hold("tcp", "127.0.0.1:8080", 60, get("/blocks?ms=60000"), nil)
			b.until("all are connected", func() bool { return c.connected.Load() == 60 })
			wait(b.ctx, 2*time.Second)
			b.row.Truth = fmt.Sprintf("%s; 60 requests, at most %d in a handler (an event loop each), %d answered", s.says(port), 4, c.answered.Load())
			said := b.ask(port, "--interval", "3s")
			b.verdict(said, "ok", "warning")
			b.silent(said, "nothing is held up", "nothing is seen to wait", "max_threads")
			b.names(said, "to be read")
			b.row.Unknown = true
		}},
	}
}

// pinned has 40 clients ask virtual threads that wait with a lock, or for it: on a Java
// where such a thread keeps its carrier, there is one for each CPU.
func (b *bench) pinned(java string, keeps bool) {
	if java == "" {
		b.row.Skipped = "not run: that Java could not be had"
		return
	}
	s := b.embedded(options{java: java}, "protocol=HTTP/1.1", "port=8080", "useVirtualThreads=true")
	b.answers("127.0.0.1:8080")
	b.hold("tcp", "127.0.0.1:8080", 10, get("/?lock=600000"), nil)
	b.until("the first are connected", func() bool { return s.says(port).Connections >= 10 })
	wait(b.ctx, 2*time.Second)
	c := b.hold("tcp", "127.0.0.1:8080", 30, get("/?lock=600000"), nil)
	b.until("all are connected", func() bool { return c.connected.Load() == 30 && s.says(port).Connections >= 40 })
	wait(b.ctx, 2*time.Second)
	b.row.Truth = s.says(port).String() + "; 10 requests, and 30 two seconds later"
	said := b.ask(port, "--interval", "3s")
	if keeps {
		b.row.Truth += "; two have the carriers, and the 30 are not begun"
		b.verdict(said, "warning")
		b.silent(said, "nothing is held up", "threads.max", "maxThreads from")
		b.names(said, "to be read")
		b.row.Unknown = true
		return
	}
	b.row.Truth += "; all are begun, and one has the lock"
	b.verdict(said, "ok")
}

// deafNameServer is one that no packet reaches, in this mount namespace alone.
func (b *bench) deafNameServer() {
	conf := filepath.Join(b.dir, "resolv.conf")
	b.must(os.WriteFile(conf, []byte("nameserver 198.18.0.1\noptions timeout:30 attempts:5\n"), 0o600))
	b.must(output(b.ctx, "", "mount", "--bind", conf, "/etc/resolv.conf"))
	b.cleanup = append(b.cleanup, func() { _ = exec.Command("umount", "/etc/resolv.conf").Run() }) //nolint:noctx // ends with the case
	b.route()
}
