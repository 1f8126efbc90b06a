package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/e2e"
)

// both asks a one-shot and an agent that has watched for some seconds, and expects one
// of some verdicts of each.
func (b *bench) both(want ...string) said {
	s := b.ask(port, "--interval", "2s")
	b.verdict(s, want...)
	text := b.row.Said
	a := b.agent(want...)
	b.verdict(a, want...)
	if got := b.row.Said; got != text {
		b.row.Said = text + " The agent: " + got
	}
	s.all += a.all
	return s
}

// agent is what an agent says of the port: at the latest after half a minute what is
// expected, as another cause of the same status is shown when it has lasted.
func (b *bench) agent(want ...string) (s said) {
	agent, err := e2e.Artifacts{Tcpdiag: b.Tcpdiag}.StartAgentAs(b.ctx, b.viewer, watcherPort, "--port", fmt.Sprint(port))
	b.must(err)
	defer func() { _, _ = agent.Stop() }()
	for deadline := time.Now().Add(30 * time.Second); ; wait(b.ctx, time.Second) {
		wait(b.ctx, 5*time.Second)
		text, err := agent.Get(b.ctx, "/api/v1/snapshot")
		b.must(err)
		d, err := e2e.Decode(text)
		b.must(err)
		s = said{document: d, listener: d.On(port), all: string(text)}
		if s.listener == nil {
			b.must(b.ctx.Err())
			continue
		}
		v := s.listener.Verdict
		b.row.Said = strings.TrimSpace(v.Status + " " + v.Cause + ": " + v.Summary)
		if matches(v.Status, v.Cause, want) || time.Now().After(deadline) {
			return s
		}
	}
}

// lies are servers whose configuration does not say what is in force.
func lies() []deployment {
	slow := get("/slow.jsp?ms=600000")
	full := func(b *bench, s *server, clients, busy, held int) {
		b.answers("127.0.0.1:8080")
		b.hold("tcp", "127.0.0.1:8080", clients, slow, nil)
		b.until("it holds what it can", func() bool { return s.says(port).Busy == busy && s.says(port).Connections >= held })
		b.row.Truth = s.says(port).String()
	}
	standalone := func(attributes string) func(*bench) *server {
		return func(b *bench) *server {
			return b.tomcat(tomcat10, options{}, `<Connector port="8080" minSpareThreads="2" `+attributes+`/>`)
		}
	}
	edited := func(to string, want ...string) func(*bench) {
		return func(b *bench) {
			s := b.tomcat(tomcat10, options{}, fewConnector)
			b.answers("127.0.0.1:8080")
			file := filepath.Join(b.dir, "base/conf/server.xml")
			text, err := os.ReadFile(file)
			b.must(err)
			b.must(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), fewAttributes, to)), 0o600))
			full(b, s, 23, fewThreads, fewConnections)
			said := b.both(want...)
			b.silent(said, "from 200", "from 8192", "of 200 threads", "of 8,192")
		}
	}
	return []deployment{
		{"limits raised over JMX while it runs: 6 to 40 threads, 20 to 200 connections, 60 clients", func(b *bench) {
			s := standalone(`maxThreads="6" maxConnections="20"`)(b)
			b.answers("127.0.0.1:8080")
			s.set("maxThreads", 40)
			s.set("maxConnections", 200)
			full(b, s, 60, 40, 60)
			b.silent(b.both("saturated max_threads"), "from 6 to", "of 6 threads", "from 20 to", "because Tomcat holds")
		}},
		{"limits raised over JMX: 6 to 40 threads, 30 clients", func(b *bench) {
			s := standalone(`maxThreads="6" maxConnections="200"`)(b)
			b.answers("127.0.0.1:8080")
			s.set("maxThreads", 40)
			full(b, s, 30, 30, 30)
			b.silent(b.both("ok"), "from 6 to", "of 6 threads")
		}},
		{"connections lowered over JMX to 15, threads enough, 40 clients", func(b *bench) {
			s := standalone(`maxThreads="60" maxConnections="8192" acceptCount="100"`)(b)
			b.answers("127.0.0.1:8080")
			s.set("maxConnections", 15)
			full(b, s, 40, 15, 15)
			said := b.both("saturated max_connections", "warning")
			b.silent(said, "restart the server", "from 8192", "from 8,192")
		}},
		{"server.xml edited after the start: larger limits, not yet in force", edited(`maxThreads="200" maxConnections="8192" acceptCount="5"`, "saturated max_connections", "losing max_connections")},
		{"maxConnections 6 smaller than maxThreads 40", func(b *bench) {
			s := standalone(`maxThreads="40" maxConnections="6" acceptCount="50"`)(b)
			full(b, s, 12, 6, 6)
			b.silent(b.both("saturated max_connections"), "maxThreads from", "threads are busy")
		}},
		{"acceptCount 1, 1 thread, 2 connections, 4 clients", func(b *bench) {
			s := standalone(`maxThreads="1" maxConnections="2" acceptCount="1"`)(b)
			full(b, s, 4, 1, 2)
			b.both("saturated max_connections")
		}},
		{"threads.max in a profile that is not active", func(b *bench) {
			b.must(os.MkdirAll(b.dir+"/config", 0o755))
			b.must(os.WriteFile(b.dir+"/config/application.properties", []byte("server.tomcat.threads.max=6\n"), 0o600))
			b.must(os.WriteFile(b.dir+"/config/application-prod.properties", []byte("server.tomcat.threads.max=200\n"), 0o600))
			s := b.boot("none", options{})
			b.spring(s, 30, 6)
			b.silent(b.both("saturated max_threads"), "from 200", "of 200 threads")
		}},
		{"the environment overrules the file, seen by somebody who may not read it", func(b *bench) {
			b.must(os.MkdirAll(b.dir+"/config", 0o755))
			b.must(os.WriteFile(b.dir+"/config/application.properties", []byte("server.tomcat.threads.max=60\nserver.tomcat.max-connections=500\n"), 0o644)) //nolint:gosec // anybody may
			b.viewer = &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{}}
			s := b.boot("none", options{env: []string{"SERVER_TOMCAT_THREADS_MAX=6", "SERVER_TOMCAT_MAXCONNECTIONS=20"}})
			b.spring(s, 25, 6)
			said := b.both("saturated max_threads", "saturated max_connections", "warning", "ok")
			b.silent(said, "from 60", "from 500", "nothing is held up", "nothing is seen to wait")
			b.names(said, "limits_unknown")
			b.row.Unknown = true
		}},
		{"two connectors share an executor of 8 threads, TLS and plain", func(b *bench) {
			server := fmt.Sprintf(`<Server port="-1"><Service name="Catalina"><Executor name="pool" namePrefix="pool-" maxThreads="8" minSpareThreads="8"/>
<Connector port="8080" executor="pool"/><Connector port="8443" executor="pool" SSLEnabled="true"><SSLHostConfig><Certificate certificateKeystoreFile=%q certificateKeystorePassword=%q/></SSLHostConfig></Connector>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>`, b.Keystore, keystorePassword)
			s := b.tomcat(tomcat10, options{}, server)
			b.answers("127.0.0.1:8080")
			b.answers("127.0.0.1:8443")
			b.hold("tcp", "127.0.0.1:8443", 5, slow, unverified())
			b.until("five threads are busy", func() bool { return s.says(8443).Connections >= 5 })
			wait(b.ctx, 2*time.Second)
			b.hold("tcp", "127.0.0.1:8080", 12, slow, nil)
			b.until("all are connected", func() bool { return s.says(port).Connections >= 12 })
			b.row.Truth = fmt.Sprintf("%d connections on 8443, whose requests came first, %d on 8080, for 8 threads", s.says(8443).Connections-1, s.says(port).Connections-1)
			said := b.both("saturated max_threads", "warning", "ok")
			b.silent(said, "3 of 8 threads", "nothing is held up")
		}},
	}
}

// spring overloads the Spring Boot application.
func (b *bench) spring(s *server, clients, busy int) {
	b.answers("127.0.0.1:8080")
	b.hold("tcp", "127.0.0.1:8080", clients, get("/hello?ms=600000"), nil)
	b.until("it holds what it can", func() bool {
		says := s.says(port)
		return says.Busy == busy && says.Connections >= min(clients, says.MaxConnections)
	})
	b.row.Truth = s.says(port).String()
}
