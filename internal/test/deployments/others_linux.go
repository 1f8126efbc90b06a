package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const tomcat10 = "10.1.59"

// slow overloads the pool of six threads of a standalone server.
func (b *bench) slow(s *server) {
	const clients, n = 30, 6
	b.answers("127.0.0.1:8080")
	b.hold("tcp", "127.0.0.1:8080", clients, get("/slow.jsp?ms=60000"), nil)
	b.until("all threads are busy", func() bool { return s.says(port).Busy == n && s.says(port).Connections >= clients })
	b.row.Truth = s.says(port).String()
	b.verdict(b.ask(port), "saturated max_threads")
}

func others() []deployment {
	const pool = `<Connector port="8080" maxThreads="6" maxConnections="60"/>`
	version := func(v string, o options) deployment {
		return deployment{"Tomcat " + v + javaName(o), func(b *bench) { b.slow(b.tomcat(v, o, pool)) }}
	}
	threads := func(name, protocol string, held int, o options, want ...string) deployment {
		return deployment{name, func(b *bench) {
			s := b.embedded(o, "protocol="+protocol, "port=8080", "maxThreads=6", "maxConnections=60")
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 30, get("/?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy >= 5 && s.says(port).Connections >= held })
			b.row.Truth = s.says(port).String()
			said := b.ask(port)
			b.verdict(said, want...)
			b.silent(said, "of 200 threads")
			b.row.Unknown = said.listener != nil && said.listener.Verdict.Cause == ""
		}}
	}
	foreign := func(kind string) deployment {
		return deployment{"Spring Boot on " + kind, func(b *bench) {
			b.bootOf("none", kind, boot, options{})
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 300, get("/hello?ms=60000"), nil)
			time.Sleep(2 * time.Second)
			b.row.Truth = "no Tomcat; 300 requests, its 200 threads (or fewer) busy"
			said := b.ask(port)
			b.silent(said, `"max_threads"`, `"max_connections"`, `"server": "tomcat"`, "server.tomcat", "nothing is held up")
			b.row.Unknown = true
		}}
	}
	return []deployment{
		version("8.5.100", options{}), version("9.0.117", options{}), version("11.0.24", options{}),
		version("11.0.24", options{java: modern}),
		threads("embedded without Spring, limits in code", "HTTP/1.1", 30, options{}, "saturated max_threads", "ok"),
		threads("embedded, NIO2, limits in code", "org.apache.coyote.http11.Http11Nio2Protocol", 5, options{}, "saturated max_threads", "ok"), // its acceptor is one of the threads
		{"an executor with a priority queue and renamed threads", func(b *bench) {
			s := b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", "executor=4", "maxConnections=60")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 30, get("/?ms=60000"), nil)
			b.until("all are connected", func() bool { return c.connected.Load() == 30 && s.says(port).Connections >= 30 })
			b.row.Truth = s.says(port).String() + "; 4 threads \"orders-N\" busy, 26 requests queued"
			said := b.ask(port)
			b.row.Unknown = true
			b.silent(said, "of 200 threads", "from 200 to", "nothing is held up")
		}},
		{"a shared Executor of two connectors, full for both", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, `<Executor name="both" maxThreads="8" minSpareThreads="2" maxQueueSize="15"/>
<Connector port="8080" executor="both"/><Connector port="8090" executor="both"/>`)
			b.answers("127.0.0.1:8080")
			b.answers("127.0.0.1:8090")
			first := b.hold("tcp", "127.0.0.1:8080", 6, get("/slow.jsp?ms=60000"), nil)
			b.hold("tcp", "127.0.0.1:8090", 2, get("/slow.jsp?ms=60000"), nil)
			b.until("8 are served", func() bool {
				return first.connected.Load() == 6 && s.says(8080).Connections >= 6 && s.says(8090).Connections >= 2
			})
			time.Sleep(2 * time.Second)
			b.hold("tcp", "127.0.0.1:8080", 9, get("/slow.jsp?ms=60000"), nil)
			b.hold("tcp", "127.0.0.1:8090", 3, get("/slow.jsp?ms=60000"), nil)
			b.until("12 wait", func() bool { return s.says(8080).Connections >= 15 && s.says(8090).Connections >= 5 })
			b.row.Truth = "8 of 8 threads busy (6 for this connector), 12 of 15 places of the queue"
			both := b.ask(0)
			for _, p := range []int{8080, 8090} {
				l := both.document.On(p)
				if l == nil {
					b.holds(false, "no entry for %d", p)
					continue
				}
				b.row.Said = l.Verdict.Status + " " + l.Verdict.Cause + ": " + l.Verdict.Summary
				b.holds(l.Verdict.Cause == "max_threads", "%d: %s", p, l.Verdict.Cause)
			}
			b.silent(both, "6 of 8 threads", "2 of 8 threads")
		}},
		{"a standalone Tomcat with TLS", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, fmt.Sprintf(`<Connector port="8080" maxThreads="6" SSLEnabled="true"><SSLHostConfig><Certificate certificateKeystoreFile=%q certificateKeystorePassword=%q/></SSLHostConfig></Connector>`, b.Keystore, keystorePassword))
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 6, get("/slow.jsp?ms=60000"), unverified())
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 6 })
			b.row.Truth = s.says(port).String()
			said := b.ask(port)
			b.silent(said, "Actuator", "nothing is held up")
			b.names(said, "currentThreadsBusy", "not_observable")
			b.row.Unknown = true
		}},
		{"an AJP connector beside the HTTP one", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, pool+`<Connector protocol="AJP/1.3" address="127.0.0.1" port="8009" secretRequired="false" maxConnections="3" maxThreads="2"/>`)
			b.slow(s)
		}},
		{"two Services in one Tomcat, one of them full", func(b *bench) {
			service := func(name string, p, n int) string {
				return fmt.Sprintf(`<Service name=%q><Connector port="%d" maxThreads="%d"/><Engine name=%q defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service>`, name, p, n, name)
			}
			s := b.tomcat(tomcat10, options{}, `<Server port="-1">`+service("one", 8080, 6)+service("two", 8090, 60)+`</Server>`)
			b.answers("127.0.0.1:8090")
			b.slow(s)
			b.verdict(b.askOther(8090), "ok")
		}},
		{"CATALINA_BASE behind symbolic links", func(b *bench) {
			home := b.distribution(tomcat10)
			base := b.base(home, pool)
			b.must(os.Rename(filepath.Join(base, "conf"), filepath.Join(b.dir, "conf-of-prod")))
			b.must(os.Symlink("../conf-of-prod", filepath.Join(base, "conf")))
			b.must(os.Symlink(base, filepath.Join(b.dir, "current")))
			b.slow(b.catalina(home, filepath.Join(b.dir, "current"), options{}))
		}},
		{"a pid and a mount namespace of its own", func(b *bench) {
			o := options{attr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}}
			b.slow(b.tomcat(tomcat10, o, pool))
		}},
		{"another user, seen by root", func(b *bench) {
			b.must(os.Chmod(b.dir, 0o777)) //nolint:gosec // the server's user writes there
			o := options{attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1001, Gid: 1001}}}
			home := filepath.Join(b.dir, "tomcat")
			b.must(output(b.ctx, "", "cp", "-r", b.distribution(tomcat10), home))
			base := b.base(home, pool)
			b.must(output(b.ctx, "", "chown", "-R", "1001:1001", base, home))
			b.must(os.Chmod(b.Dir, 0o755)) //nolint:gosec // likewise
			b.slow(b.catalina(home, base, o))
		}},
		{"IPv6 only, [::1]", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, `<Connector address="::1" port="8080" maxThreads="6"/>`)
			b.answers("[::1]:8080")
			b.hold("tcp", "[::1]:8080", 30, get("/slow.jsp?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(0).Busy == 6 && s.says(0).Connections >= 30 })
			b.row.Truth = s.says(0).String()
			b.verdict(b.ask(port), "saturated max_threads")
		}},
		{"a connector on a UNIX domain socket beside a TCP one", func(b *bench) {
			socket := filepath.Join(b.dir, "web.sock")
			s := b.tomcat(tomcat10, options{}, pool+`<Connector protocol="org.apache.coyote.http11.Http11NioProtocol" unixDomainSocketPath="`+socket+`" maxThreads="3"/>`)
			b.until("the socket is there", func() bool { _, err := os.Stat(socket); return err == nil })
			b.hold("unix", socket, 10, get("/slow.jsp?ms=60000"), nil)
			b.answers("127.0.0.1:8080")
			time.Sleep(2 * time.Second)
			b.row.Truth = s.says(port).String() + "; 3 of 3 threads busy on the UNIX socket"
			b.verdict(b.ask(port), "ok")
		}},
		{"Spring Boot 4.0.9 (Tomcat 11)", func(b *bench) {
			b.threads(b.bootOf("none", "tomcat", "4.0.9", options{}, "server.tomcat.threads.max=6"))
		}},
		foreign("jetty"), foreign("undertow"),
	}
}

func javaName(o options) string {
	if o.java == "" {
		return ""
	}
	return " on Java 25"
}

// askOther asks without changing what the table shows.
func (b *bench) askOther(p int) said {
	row := b.row.Said
	s := b.ask(p)
	b.row.Said = row
	return s
}
