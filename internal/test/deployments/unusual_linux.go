package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Of the connectors that overloaded fills: its threads, its connections, its queue.
const (
	fewThreads, fewConnections, shortQueue = 6, 20, 5
	fewAttributes                          = `maxThreads="6" maxConnections="20" acceptCount="5" connectionTimeout="600000"`
	fewConnector                           = `<Connector port="8080" ` + fewAttributes + `/>`
)

// overloaded fills a connector in three ways one after the other: more clients than
// threads, than connections, than places in the queue.
func (b *bench) overloaded(s *server, text string, config *tls.Config) {
	b.answers("127.0.0.1:8080")
	var truth, says []string
	clients, connected := 0, int64(0)
	var crowds []*crowd
	for _, w := range []struct {
		more int
		want []string
	}{
		{15, []string{"saturated max_threads"}},
		{8, []string{"saturated max_connections"}},
		{20, []string{"losing max_connections", "saturated max_connections"}},
	} {
		clients += w.more
		crowds = append(crowds, b.hold("tcp", "127.0.0.1:8080", w.more, text, config))
		b.until("it holds what it can", func() bool {
			connected = 0
			for _, c := range crowds {
				connected += c.connected.Load()
			}
			says := s.says(port)
			return connected >= int64(min(clients, fewConnections+shortQueue+1)) && says.Busy == fewThreads && says.Connections >= min(clients, fewConnections)
		})
		truth = append(truth, fmt.Sprintf("%s, %d of %d clients connected", s.says(port), connected, clients))
		b.verdict(b.ask(port, "--interval", "3s"), w.want...)
		says = append(says, b.row.Said)
	}
	b.row.Truth, b.row.Said = strings.Join(truth, "; then "), strings.Join(says, " Then ")
}

// unusual are servers that somebody runs somewhere, in ways that nobody documents.
func unusual() []deployment {
	slow := get("/slow.jsp?ms=600000")
	return []deployment{
		{"TomEE 8.0.9 webprofile", func(b *bench) {
			if b.had(b.tomee()) {
				b.overloaded(b.tomeeServer(), slow, nil)
			}
		}},
		{"Solr 4.10's war in Tomcat 9.0.117, requests with half a body", func(b *bench) {
			if !b.had(b.solr()) {
				return
			}
			home := b.distribution("9.0.117")
			base := b.base(home, fewConnector)
			app := filepath.Join(base, "webapps/solr")
			b.must(os.MkdirAll(app, 0o755))
			b.must(output(b.ctx, app, "jar", "xf", b.solr()))
			for _, jar := range b.logging() {
				b.must(output(b.ctx, "", "cp", jar, filepath.Join(app, "WEB-INF/lib")))
			}
			solr := filepath.Join(b.dir, "solr")
			b.must(os.MkdirAll(solr, 0o755))
			b.must(os.WriteFile(filepath.Join(solr, "solr.xml"), []byte("<solr/>"), 0o600))
			s := b.catalina(home, base, options{vm: []string{"-Dsolr.solr.home=" + solr}})
			text := "POST /solr/admin/cores HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\naction=ST"
			b.overloaded(s, text, nil)
		}},
		{"haproxy in front, which takes the PROXY protocol from whoever is before it and passes the bytes on", func(b *bench) {
			if !b.needs("haproxy") {
				return
			}
			s := b.tomcat(tomcat10, options{}, fewConnector)
			b.answers("127.0.0.1:8080")
			b.haproxy("mode tcp\n bind 127.0.0.1:80 accept-proxy\n server app 127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:80", 15, "PROXY TCP4 192.0.2.7 192.0.2.8 40000 80\r\n"+slow, nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == fewThreads && s.says(port).Connections >= 15 })
			b.row.Truth = s.says(port).String() + ", all from haproxy"
			said := b.ask(port)
			b.verdict(said, "saturated max_threads")
			b.names(said, `"top_peer"`)
		}},
		{"haproxy sends the PROXY protocol to a Tomcat, which has none", func(b *bench) {
			if !b.needs("haproxy") {
				return
			}
			s := b.tomcat(tomcat10, options{}, `<Connector port="8080" maxThreads="6"/>`)
			b.answers("127.0.0.1:8080")
			b.haproxy("mode tcp\n bind 127.0.0.1:80\n server app 127.0.0.1:8080 send-proxy")
			c := b.hold("tcp", "127.0.0.1:80", 30, slow, nil)
			b.until("all have been turned away", func() bool { return c.connected.Load() == 30 && s.says(port).Connections <= 1 })
			b.row.Truth = fmt.Sprintf("%s; the server ended the connections of 30 clients at once, %d of which read the answer 400", s.says(port), c.answered.Load())
			b.verdict(b.ask(port), "ok")
		}},
		{"Tomcat 11.0.24, OpenSSL by the foreign function interface of Java 25", func(b *bench) {
			b.openSSL("11.0.24", modern, "OpenSSLLifecycleListener", "panama.OpenSSLImplementation", "--enable-native-access=ALL-UNNAMED")
		}},
		{"Tomcat 8.5.100, OpenSSL by tomcat-native", func(b *bench) {
			if _, err := os.Stat("/usr/lib/x86_64-linux-gnu/libtcnative-1.so"); err != nil {
				b.row.Skipped = "not run: libtcnative-1 is not installed"
				return
			}
			b.openSSL("8.5.100", "", "AprLifecycleListener", "OpenSSLImplementation", "-Djava.library.path=/usr/lib/x86_64-linux-gnu")
		}},
		{"a launcher script stays the parent of a Spring Boot jar", func(b *bench) {
			script := filepath.Join(b.dir, "launcher.sh")
			b.must(os.WriteFile(script, []byte("#!/bin/sh\n# as of a service wrapper: starts it, waits, and says how it ended\n\"$@\"\necho ended with $?\n"), 0o700)) //nolint:gosec // it is run
			s := b.boot("none", options{wrap: []string{script, "setpriv", "--pdeathsig", "KILL"}}, "server.tomcat.threads.max=6", "server.tomcat.max-connections=20", "server.tomcat.accept-count=5")
			b.overloaded(s, get("/hello?ms=600000"), nil)
		}},
		{"jsvc, the daemon that Debian starts Tomcat with on port 80", func(b *bench) {
			if !b.needs("jsvc") {
				return
			}
			b.overloaded(b.jsvc(fewConnector), slow, nil)
		}},
		{"two Tomcats, seen by somebody who may not see whose the ports are", func(b *bench) {
			b.viewer = &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{}}
			s := b.tomcat(tomcat10, options{}, fewConnector)
			b.answers("127.0.0.1:8080")
			second := *b
			second.dir = filepath.Join(b.dir, "second")
			b.must(os.MkdirAll(second.dir, 0o755))
			second.embedded(options{}, "protocol=HTTP/1.1", "port=8081", "maxThreads=40")
			b.cleanup = append(b.cleanup, second.cleanup[len(second.cleanup)-1])
			b.answers("127.0.0.1:8081")
			b.hold("tcp", "127.0.0.1:8080", 23, slow, nil)
			b.until("it is full", func() bool { return s.says(port).Busy == fewThreads && s.says(port).Connections >= fewConnections })
			b.row.Truth = s.says(port).String() + "; nobody on 8081"
			said := b.ask(port, "--interval", "3s")
			b.silent(said, "of 200", "of 8,192", "of 40 threads")
			b.verdict(said, "saturated max_threads") // their number is in the threads' names, which anybody may read
			b.names(said, "limits_unknown")
			b.row.Unknown = true
		}},
	}
}

// openSSL is a TLS connector whose encryption is not Java's.
func (b *bench) openSSL(version, java, listener, implementation, flag string) {
	if java != "" {
		if _, err := os.Stat(java); err != nil {
			b.row.Skipped = "not run: that Java could not be had"
			return
		}
	}
	connector := fmt.Sprintf(`<Connector port="8080" %s SSLEnabled="true" sslImplementationName="org.apache.tomcat.util.net.openssl.%s"><SSLHostConfig><Certificate certificateKeystoreFile=%q certificateKeystorePassword=%q/></SSLHostConfig></Connector>`, fewAttributes, implementation, b.Keystore, keystorePassword)
	s := b.tomcat(version, options{java: java, vm: []string{flag}}, fmt.Sprintf(`<Server port="-1"><Listener className="org.apache.catalina.core.%s"/><Service name="Catalina">%s<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>`, listener, connector))
	b.overloaded(s, get("/slow.jsp?ms=600000"), unverified())
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.pid))
	b.must(err)
	b.holds(strings.Contains(string(maps), "libssl"), "the server has not loaded OpenSSL: this is another case")
}

// haproxy starts it with a section of its configuration.
func (b *bench) haproxy(listen string) {
	conf := filepath.Join(b.dir, "haproxy.cfg")
	b.must(os.WriteFile(conf, []byte("global\n maxconn 1000\ndefaults\n timeout connect 5s\n timeout client 10m\n timeout server 10m\nlisten web\n "+listen+"\n"), 0o600))
	b.program("haproxy", "-db", "-f", conf)
	b.answers("127.0.0.1:80")
}

// tomeeServer starts an unpacked TomEE, whose own configuration stays but for the
// connector.
func (b *bench) tomeeServer() *server {
	b.must(output(b.ctx, b.dir, "jar", "xf", b.tomee()))
	home := filepath.Join(b.dir, "apache-tomee-webprofile-8.0.9")
	file := filepath.Join(home, "conf/server.xml")
	text, err := os.ReadFile(file)
	b.must(err)
	connector := regexp.MustCompile(`(?s)<Connector port="8080".*?/>`)
	xml := connector.ReplaceAllString(strings.ReplaceAll(string(text), `<Server port="8005"`, `<Server port="-1"`), fewConnector)
	b.must(os.WriteFile(file, []byte(xml), 0o600))
	b.must(os.WriteFile(filepath.Join(home, "webapps/ROOT/slow.jsp"), []byte(page), 0o600))
	vm := []string{"-javaagent:" + filepath.Join(home, "lib/openejb-javaagent.jar"), "-Dopenejb.home=" + home}
	for _, opened := range []string{"java.base/java.lang", "java.base/java.io", "java.base/java.util", "java.base/java.net", "java.rmi/sun.rmi.transport"} {
		vm = append(vm, "--add-opens="+opened+"=ALL-UNNAMED")
	}
	return b.catalina(home, home, options{vm: vm})
}

// jsvc runs Tomcat inside a program of its own that loads the JVM.
func (b *bench) jsvc(connectors string) *server {
	home := b.distribution(tomcat10)
	base := b.base(home, connectors)
	s := &server{b: b, truth: filepath.Join(b.dir, "truth.json"), log: filepath.Join(b.dir, "server.log")}
	jars := strings.Join([]string{filepath.Join(home, "bin/bootstrap.jar"), filepath.Join(home, "bin/tomcat-juli.jar"), filepath.Join(home, "bin/commons-daemon.jar")}, ":")
	program, err := exec.LookPath("jsvc") // it starts itself again
	b.must(err)
	b.program(program, "-nodetach", "-home", "/usr/lib/jvm/java-17-openjdk-amd64", "-procname", "tomcat10", "-pidfile", filepath.Join(b.dir, "jsvc.pid"), "-cp", jars,
		"-outfile", s.log, "-errfile", s.log, "-Xmx160m", "-javaagent:"+b.Truth+"="+s.truth, "-Djava.io.tmpdir="+b.dir, "-Dcatalina.base="+base, "-Dcatalina.home="+home, "org.apache.catalina.startup.Bootstrap")
	return s
}
