package deployments

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// Of the connectors that overloaded fills: its threads, its connections, its queue.
const (
	fewThreads, fewConnections, shortQueue = 6, 20, 5
	fewAttributes                          = `maxThreads="6" maxConnections="20" acceptCount="5" connectionTimeout="600000"`
	fewConnector                           = `<Connector port="8080" ` + fewAttributes + `/>`
)

// overloaded fills a connector in three ways one after the other: more clients than
// threads, than connections, than places in the queue.
func overloaded(c *rig.Case, s *rig.Server, text string, config *tls.Config) {
	c.Answers("127.0.0.1:8080")
	var truth, says []string
	clients, connected := 0, int64(0)
	var crowds []*rig.Crowd
	for _, w := range []struct {
		more int
		want []string
	}{
		{15, []string{"saturated max_threads"}},
		{8, []string{"saturated max_connections"}},
		{20, []string{"losing max_connections", "saturated max_connections"}},
	} {
		clients += w.more
		crowds = append(crowds, c.Hold(rig.Clients{N: w.more, Text: text, TLS: config}))
		c.Until("it holds what it can", func() bool {
			connected = 0
			for _, one := range crowds {
				connected += one.Connected.Load()
			}
			says := s.Says(rig.Port)
			return connected >= int64(min(clients, fewConnections+shortQueue+1)) && says.Busy == fewThreads && says.Connections >= min(clients, fewConnections)
		})
		truth = append(truth, fmt.Sprintf("%s, %d of %d clients connected", s.Says(rig.Port), connected, clients))
		c.Ask(rig.Port, "--interval", "3s").Verdict(w.want...)
		says = append(says, c.Row.Said)
	}
	c.Row.Truth, c.Row.Said = strings.Join(truth, "; then "), strings.Join(says, " Then ")
}

// unusual are servers that somebody runs somewhere, in ways that nobody documents.
func unusual() []deployment {
	slow := rig.Get("/slow.jsp?ms=600000")
	return []deployment{
		{"TomEE 8.0.9 webprofile", func(c *rig.Case) {
			overloaded(c, tomeeServer(c), slow, nil)
		}},
		{"Solr 4.10's war in Tomcat 9.0.117, requests with half a body", func(c *rig.Case) {
			war := c.Artifact("org.apache.solr:solr:4.10.4:war")
			home := c.Distribution("9.0.117")
			base := c.Base(home, fewConnector)
			app := filepath.Join(base, "webapps/solr")
			c.Must(os.MkdirAll(app, 0o755))
			c.DoIn(app, "jar", "xf", war)
			for _, jar := range c.Logging() {
				c.Do("cp", jar, filepath.Join(app, "WEB-INF/lib"))
			}
			solr := filepath.Join(c.Dir, "solr")
			c.Must(os.MkdirAll(solr, 0o755))
			c.Must(os.WriteFile(filepath.Join(solr, "solr.xml"), []byte("<solr/>"), 0o600))
			s := c.Catalina(home, base, rig.JVM{VM: []string{"-Dsolr.solr.home=" + solr}})
			text := "POST /solr/admin/cores HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\naction=ST"
			overloaded(c, s, text, nil)
		}},
		{"haproxy in front, which takes the PROXY protocol from whoever is before it and passes the bytes on", func(c *rig.Case) {
			c.Needs("haproxy")
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, fewConnector)
			c.Answers("127.0.0.1:8080")
			c.Haproxy("mode tcp\n bind 127.0.0.1:80 accept-proxy\n server app 127.0.0.1:8080")
			c.Hold(rig.Clients{Address: "127.0.0.1:80", N: 15, Text: "PROXY TCP4 192.0.2.7 192.0.2.8 40000 80\r\n" + slow})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy == fewThreads && s.Says(rig.Port).Connections >= 15 })
			c.Row.Truth = s.Says(rig.Port).String() + ", all from haproxy"
			said := c.Ask(rig.Port)
			said.Verdict("saturated max_threads")
			said.Names(`"top_peer"`)
		}},
		{"haproxy sends the PROXY protocol to a Tomcat, which has none", func(c *rig.Case) {
			c.Needs("haproxy")
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector port="8080" maxThreads="6"/>`)
			c.Answers("127.0.0.1:8080")
			c.Haproxy("mode tcp\n bind 127.0.0.1:80\n server app 127.0.0.1:8080 send-proxy")
			w := c.Hold(rig.Clients{Address: "127.0.0.1:80", N: 30, Text: slow})
			c.Until("all have been turned away", func() bool { return w.Connected.Load() == 30 && s.Says(rig.Port).Connections <= 1 })
			c.Row.Truth = fmt.Sprintf("%s; the server ended the connections of 30 clients at once, %d of which read the answer 400", s.Says(rig.Port), w.Answered.Load())
			c.Ask(rig.Port).Verdict("ok")
		}},
		{"Tomcat 11.0.24, OpenSSL by the foreign function interface of Java 25", func(c *rig.Case) {
			openSSL(c, "11.0.24", rig.ModernJava, "OpenSSLLifecycleListener", "panama.OpenSSLImplementation", "--enable-native-access=ALL-UNNAMED")
		}},
		{"Tomcat 8.5.100, OpenSSL by tomcat-native", func(c *rig.Case) {
			c.NeedsFile(tomcatNative+"/libtcnative-1.so", "libtcnative-1")
			openSSL(c, "8.5.100", "", "AprLifecycleListener", "OpenSSLImplementation", "-Djava.library.path="+tomcatNative)
		}},
		{"a launcher script stays the parent of a Spring Boot jar", func(c *rig.Case) {
			script := filepath.Join(c.Dir, "launcher.sh")
			c.Must(os.WriteFile(script, []byte("#!/bin/sh\n# as of a service wrapper: starts it, waits, and says how it ended\n\"$@\"\necho ended with $?\n"), 0o700)) //nolint:gosec // it is run
			s := c.Boot("none", rig.JVM{Wrap: []string{script, "setpriv", "--pdeathsig", "KILL"}}, "server.tomcat.threads.max=6", "server.tomcat.max-connections=20", "server.tomcat.accept-count=5")
			overloaded(c, s, rig.Get("/hello?ms=600000"), nil)
		}},
		{"jsvc, the daemon that Debian starts Tomcat with on port 80", func(c *rig.Case) {
			c.Needs("jsvc")
			overloaded(c, c.Jsvc(fewConnector), slow, nil)
		}},
		{"two Tomcats, seen by somebody who may not see whose the ports are", func(c *rig.Case) {
			c.Viewer = nobody()
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, fewConnector)
			c.Answers("127.0.0.1:8080")
			c.Beside("second").Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8081", "maxThreads=40")
			c.Answers("127.0.0.1:8081")
			c.Hold(rig.Clients{N: 23, Text: slow})
			c.Until("it is full", func() bool {
				return s.Says(rig.Port).Busy == fewThreads && s.Says(rig.Port).Connections >= fewConnections
			})
			c.Row.Truth = s.Says(rig.Port).String() + "; nobody on 8081"
			said := c.Ask(rig.Port, "--interval", "3s")
			said.Silent("of 200", "of 8,192", "of 40 threads")
			said.Verdict("saturated max_threads") // their number is in the threads' names, which anybody may read
			said.Names("limits_unknown")
			c.Row.Unknown = true
		}},
	}
}

// openSSL is a TLS connector whose encryption is not Java's.
func openSSL(c *rig.Case, version, java, listener, implementation, flag string) {
	if java != "" {
		c.NeedsFile(java, "that Java")
	}
	connector := fmt.Sprintf(`<Connector port="8080" %s SSLEnabled="true" sslImplementationName="org.apache.tomcat.util.net.openssl.%s"><SSLHostConfig><Certificate certificateKeystoreFile=%q certificateKeystorePassword=%q/></SSLHostConfig></Connector>`, fewAttributes, implementation, c.KeystoreFile(), rig.KeystorePassword)
	s := c.Tomcat(version, rig.JVM{Java: java, VM: []string{flag}}, rig.InServer(`<Listener className="org.apache.catalina.core.`+listener+`"/>`, connector))
	overloaded(c, s, rig.Get("/slow.jsp?ms=600000"), rig.Unverified())
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.PID))
	c.Must(err)
	c.Holds(strings.Contains(string(maps), "libssl"), "the server has not loaded OpenSSL: this is another case")
}

// tomeeServer starts an unpacked TomEE, whose own configuration stays but for the
// connector.
func tomeeServer(c *rig.Case) *rig.Server {
	c.DoIn(c.Dir, "jar", "xf", c.Artifact("org.apache.tomee:apache-tomee:8.0.9:zip:webprofile"))
	home := filepath.Join(c.Dir, "apache-tomee-webprofile-8.0.9")
	file := filepath.Join(home, "conf/server.xml")
	text, err := os.ReadFile(file)
	c.Must(err)
	connector := regexp.MustCompile(`(?s)<Connector port="8080".*?/>`)
	xml := connector.ReplaceAllString(strings.ReplaceAll(string(text), `<Server port="8005"`, `<Server port="-1"`), fewConnector)
	c.Must(os.WriteFile(file, []byte(xml), 0o600))
	c.Must(os.WriteFile(filepath.Join(home, "webapps/ROOT/slow.jsp"), []byte(rig.SlowPage), 0o600))
	vm := []string{"-javaagent:" + filepath.Join(home, "lib/openejb-javaagent.jar"), "-Dopenejb.home=" + home}
	for _, opened := range []string{"java.base/java.lang", "java.base/java.io", "java.base/java.util", "java.base/java.net", "java.rmi/sun.rmi.transport"} {
		vm = append(vm, "--add-opens="+opened+"=ALL-UNNAMED")
	}
	return c.Catalina(home, home, rig.JVM{VM: vm})
}
