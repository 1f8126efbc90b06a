package main

import (
	"errors"
	"os"
	"path/filepath"
)

// javas are servers on other Javas, and started in other ways.
func javas() []deployment {
	const pool = `<Connector port="8080" maxThreads="6" maxConnections="60"/>`
	on := func(tomcat, java string) deployment {
		return deployment{"Tomcat " + tomcat + " on Java " + java[:2], func(b *bench) {
			if b.wheel(java) == "" {
				b.row.Skipped = "not run: Java " + java[:2] + " could not be had"
				return
			}
			b.slow(b.tomcat(tomcat, options{java: b.wheel(java)}, pool))
		}}
	}
	started := func(name string, o func(b *bench, jar string) options) deployment {
		return deployment{name, func(b *bench) {
			jar, err := b.app(b.ctx, "none", "tomcat", boot)
			b.must(err)
			b.threads(b.java(o(b, jar)))
		}}
	}
	return []deployment{
		on("9.0.117", java11), on("8.5.100", java11), on("10.1.59", java21), on("11.0.24", java21),
		started("an argument file (java @file) sets the threads", func(b *bench, jar string) options {
			file := filepath.Join(b.dir, "arguments")
			b.must(os.WriteFile(file, []byte("-Dserver.tomcat.threads.max=6\n-jar "+jar+"\n"), 0o600))
			return options{main: []string{"@" + file}}
		}),
		started("JDK_JAVA_OPTIONS sets the threads", func(_ *bench, jar string) options {
			return options{main: []string{"-jar", jar}, env: []string{"JDK_JAVA_OPTIONS=-Dserver.tomcat.threads.max=6"}}
		}),
		started("an unpacked jar, its own configuration edited", func(b *bench, jar string) options {
			unpacked := filepath.Join(b.dir, "unpacked")
			b.must(os.Mkdir(unpacked, 0o755))
			b.must(output(b.ctx, unpacked, "jar", "xf", jar))
			file := filepath.Join(unpacked, "BOOT-INF/classes/application.properties")
			text, err := os.ReadFile(file)
			b.must(err)
			b.must(os.WriteFile(file, append(text, "\nserver.tomcat.threads.max=6\n"...), 0o600))
			return options{main: []string{"-cp", unpacked, "org.springframework.boot.loader.launch.JarLauncher"}}
		}),
		started("a placeholder with a default of the environment", func(_ *bench, jar string) options {
			return options{main: []string{"-jar", jar, "--server.tomcat.threads.max=${POOL:${OTHER:9}}"}, env: []string{"POOL=6"}}
		}),
		started("the shell's exec of a script with a wrapper's name", func(b *bench, jar string) options {
			script := filepath.Join(b.dir, "run.sh")
			b.must(os.WriteFile(script, []byte("#!/bin/sh\nexec -a shop \"$@\"\n"), 0o700)) //nolint:gosec // it is run
			return options{wrap: []string{"bash", script}, main: []string{"-jar", jar, "--server.tomcat.threads.max=6"}}
		}),
	}
}

// more are connectors and applications that are not everybody's.
func more() []deployment {
	slow := get("/slow.jsp?ms=60000")
	busyOf := func(b *bench, s *server, text string, held int) said {
		b.answers("127.0.0.1:8080")
		b.hold("tcp", "127.0.0.1:8080", 30, text, nil)
		b.until("all threads are busy", func() bool { return s.says(port).Busy >= 5 && s.says(port).Connections >= held })
		b.row.Truth = s.says(port).String()
		said := b.ask(port, "--interval", "3s")
		if s.says(port).Busy < 5 {
			b.must(errors.New("the load ended by itself"))
		}
		return said
	}
	return []deployment{
		{"an NIO2 connector of a standalone Tomcat", func(b *bench) {
			s := b.tomcat(tomcat10, options{}, `<Connector protocol="org.apache.coyote.http11.Http11Nio2Protocol" port="8080" maxThreads="6" maxConnections="60"/>`)
			b.verdict(busyOf(b, s, slow, 5), "saturated max_threads")
		}},
		{"APR/native, Tomcat 8.5.100", func(b *bench) {
			if _, err := os.Stat("/usr/lib/x86_64-linux-gnu/libtcnative-1.so"); err != nil {
				b.row.Skipped = "not run: libtcnative-1 is not installed"
				return
			}
			s := b.tomcat("8.5.100", options{vm: []string{"-Djava.library.path=/usr/lib/x86_64-linux-gnu"}}, `<Server port="-1"><Listener className="org.apache.catalina.core.AprLifecycleListener"/><Service name="Catalina">
<Connector protocol="org.apache.coyote.http11.Http11AprProtocol" port="8080" maxThreads="6" maxConnections="60"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>`)
			b.verdict(busyOf(b, s, slow, 30), "saturated max_threads")
		}},
		{"two applications in one Tomcat, one of them slow", func(b *bench) {
			home := b.distribution(tomcat10)
			base := b.base(home, `<Connector port="8080" maxThreads="6" maxConnections="60"/>`)
			b.must(os.CopyFS(filepath.Join(base, "webapps/shop"), os.DirFS(filepath.Join(base, "webapps/ROOT"))))
			s := b.catalina(home, base, options{})
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 3, get("/slow.jsp?ms=60000"), nil)
			b.hold("tcp", "127.0.0.1:8080", 27, get("/shop/slow.jsp?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 6 && s.says(port).Connections >= 30 })
			b.row.Truth = s.says(port).String()
			b.verdict(b.ask(port), "saturated max_threads")
		}},
		{"server-sent events whose clients have half-closed", func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.threads.max=10")
			b.answers("127.0.0.1:8080")
			c := b.hold("tcp", "127.0.0.1:8080", 11, get("/events?ms=300"), nil)
			b.until("all have events", func() bool { return c.answered.Load() == 11 })
			c.halfClose(11)
			b.until("nobody is served", func() bool { return s.says(port).Busy == 0 })
			b.row.Truth = s.says(port).String() + ", 11 streams whose clients have shut down their end"
			said := b.ask(port)
			b.verdict(said, "ok")
			b.silent(said, "11 of 10", "10 of 10 threads", "all 10 threads")
		}},
		{"Jolokia's war in Tomcat 9.0.117, 30 clients whose request has half a body", func(b *bench) {
			if !b.had(b.war()) {
				return
			}
			home := b.distribution("9.0.117")
			base := b.base(home, `<Connector port="8080" maxThreads="6" maxConnections="60" connectionTimeout="600000"/>`)
			b.must(output(b.ctx, "", "cp", b.war(), filepath.Join(base, "webapps/jolokia.war")))
			s := b.catalina(home, base, options{})
			b.verdict(busyOf(b, s, half("/jolokia/"), 30), "saturated max_threads")
		}},
		{"webapp-runner 9.0 with Jolokia's war, its limits as arguments", func(b *bench) {
			if !b.had(b.runner()) || !b.had(b.war()) {
				return
			}
			s := b.java(options{main: []string{"-jar", b.runner(), "--port", "8080", "-AmaxThreads=6", "-AmaxConnections=60", "-AconnectionTimeout=600000", b.war()}})
			said := busyOf(b, s, half("/"), 30)
			b.verdict(said, "saturated max_threads", "ok", "warning")
			b.silent(said, "of 200 threads", "from 200 to", "nothing is held up")
			b.row.Unknown = said.listener != nil && said.listener.Verdict.Cause == ""
		}},
	}
}

// had skips a case whose file could not be downloaded.
func (b *bench) had(file string) bool {
	if _, err := os.Stat(file); err != nil {
		b.row.Skipped = "not run: " + filepath.Base(file) + " could not be had"
		return false
	}
	return true
}

// half is a request of whose body the rest does not come: its handler waits for it.
func half(path string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
}
