package deployments

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// tlsConnector is one with the kit's certificate.
func tlsConnector(c *rig.Case, attributes string) string {
	return fmt.Sprintf(`<Connector %s SSLEnabled="true"><SSLHostConfig><Certificate certificateKeystoreFile=%q certificateKeystorePassword=%q/></SSLHostConfig></Connector>`, attributes, c.KeystoreFile(), rig.KeystorePassword)
}

// others are servers that are no Spring Boot application, or another one.
func others() []deployment {
	version := func(v string, j rig.JVM) rig.Overload {
		name := "Tomcat " + v
		if j.Java != "" {
			name += " on Java 25"
		}
		return slow(name, j.Tomcat(v, pool))
	}
	inCode := func(name, protocol string, held int) rig.Overload {
		o := six(name, rig.JVM{}.Embedded("protocol="+protocol, "port=8080", "maxThreads=6", "maxConnections=60"))
		o.Clients = []rig.Clients{{N: 30, Text: rig.Get("/?ms=60000")}}
		o.Full = rig.Full{Busy: 5, OrMore: true, Connections: held}
		o.Says = rig.Says{Verdict: []string{"saturated max_threads", "ok"}, Silent: []string{"of 200 threads"}, UnknownWithoutCause: true}
		return o
	}
	foreign := func(kind string) rig.Overload {
		return rig.Overload{
			Name: "Spring Boot on " + kind, Clients: hello(300),
			Server: func(c *rig.Case) *rig.Server { return c.BootOf("none", kind, rig.BootVersion, rig.JVM{}) },
			Settle: 2 * time.Second, Note: "; 300 requests, its 200 threads (or fewer) busy",
			Says: rig.Says{Unknown: true, Silent: []string{`"max_threads"`, `"max_connections"`, `"server": "tomcat"`, "server.tomcat", "nothing is held up"}},
		}
	}
	services := func(name string, p, n int) string {
		return fmt.Sprintf(`<Service name=%q><Connector port="%d" maxThreads="%d"/><Engine name=%q defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service>`, name, p, n, name)
	}
	two := slow("two Services in one Tomcat, one of them full", func(c *rig.Case) *rig.Server {
		s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Server port="-1">`+services("one", 8080, 6)+services("two", 8090, 60)+`</Server>`)
		c.Answers("127.0.0.1:8090")
		return s
	})
	two.Then = func(c *rig.Case, _ *rig.Server) {
		row := c.Row.Said
		c.Ask(8090).Verdict("ok")
		c.Row.Said = row
	}
	return slices.Concat(data(
		version("8.5.100", rig.JVM{}), version("9.0.117", rig.JVM{}), version("11.0.24", rig.JVM{}),
		version("11.0.24", rig.JVM{Java: rig.ModernJava}),
		inCode("embedded without Spring, limits in code", "HTTP/1.1", 30),
		inCode("embedded, NIO2, limits in code", "org.apache.coyote.http11.Http11Nio2Protocol", 5), // its acceptor is one of the threads
		rig.Overload{
			Name:    "an executor with a priority queue and renamed threads",
			Server:  rig.JVM{}.Embedded("protocol=HTTP/1.1", "port=8080", "executor=4", "maxConnections=60"),
			Clients: []rig.Clients{{N: 30, Text: rig.Get("/?ms=60000")}}, Full: rig.Full{Any: true, Connected: 30, Connections: 30},
			Note: "; 4 threads \"orders-N\" busy, 26 requests queued",
			Says: rig.Says{Unknown: true, Silent: []string{"of 200 threads", "from 200 to", "nothing is held up"}},
		},
	), []deployment{
		{"a shared Executor of two connectors, full for both", sharedExecutor},
		{"a standalone Tomcat with TLS", func(c *rig.Case) {
			rig.Overload{
				Server: func(c *rig.Case) *rig.Server {
					return c.Tomcat(rig.Tomcat10, rig.JVM{}, tlsConnector(c, `port="8080" maxThreads="6"`))
				},
				Clients: []rig.Clients{{N: 6, Text: slowPage, TLS: rig.Unverified()}}, Full: rig.Full{Busy: 6},
				Says: rig.Says{Unknown: true, Silent: []string{"Actuator", "nothing is held up"}, Names: []string{"currentThreadsBusy", "not_observable"}},
			}.Run(c)
		}},
		{"a standalone Tomcat with TLS, all connections taken by clients that never begin its handshake", func(c *rig.Case) {
			rig.Overload{
				Server: func(c *rig.Case) *rig.Server {
					return c.Tomcat(rig.Tomcat10, rig.JVM{}, tlsConnector(c, `port="8080" maxConnections="20" acceptCount="10" connectionTimeout="600000"`))
				},
				Clients: []rig.Clients{{N: 25}},
				Full:    rig.Full{Any: true, Connections: 20, Connected: 20}, Settle: 2 * time.Second, Agent: true,
				Says: rig.Says{
					Verdict: []string{"saturated keep_alive_idle", "losing keep_alive_idle"},
					Names:   []string{"connectionTimeout", "without a request yet"}, Silent: []string{`"unclassified": 20`},
				},
			}.Run(c)
		}},
		{"the JDK's own HttpServer, whose one thread accepts and serves", func(c *rig.Case) {
			c.Program("java", "-Xmx64m", c.Write("One.java", `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class One {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(8080), 0);
        server.createContext("/", exchange -> {
            try {
                Thread.sleep(600_000);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        server.start();
    }
}`))
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 1, Text: rig.Get("/")})
			c.Wait(time.Second)
			clients := c.Hold(rig.Clients{N: 12, Text: rig.Get("/")})
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("the only thread serves one request, the accept queue has 12 clients, %d answered", clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting").Names("one thread accepts and serves").Silent("OutOfMemoryError", "slow_accept", "max-connections N")
		}},
	}, data(
		slow("an AJP connector beside the HTTP one", rig.JVM{}.Tomcat(rig.Tomcat10, pool+`<Connector protocol="AJP/1.3" address="127.0.0.1" port="8009" secretRequired="false" maxConnections="3" maxThreads="2"/>`)),
		two,
		slow("CATALINA_BASE behind symbolic links", func(c *rig.Case) *rig.Server {
			home := c.Distribution(rig.Tomcat10)
			base := c.Base(home, pool)
			c.Must(os.Rename(filepath.Join(base, "conf"), filepath.Join(c.Dir, "conf-of-prod")))
			c.Must(os.Symlink("../conf-of-prod", filepath.Join(base, "conf")))
			c.Must(os.Symlink(base, filepath.Join(c.Dir, "current")))
			return c.Catalina(home, filepath.Join(c.Dir, "current"), rig.JVM{})
		}),
		slow("a pid and a mount namespace of its own",
			rig.JVM{Attr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}}.Tomcat(rig.Tomcat10, pool)),
		slow("another user, seen by root", func(c *rig.Case) *rig.Server {
			c.Must(os.Chmod(c.Dir, 0o777)) //nolint:gosec // the server's user writes there
			home := filepath.Join(c.Dir, "tomcat")
			c.Do("cp", "-r", c.Distribution(rig.Tomcat10), home)
			base := c.Base(home, pool)
			c.Do("chown", "-R", "1001:1001", base, home)
			return c.Catalina(home, base, rig.JVM{Attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1001, Gid: 1001}}})
		}),
		rig.Overload{
			Name: "IPv6 only, [::1]", Address: "[::1]:8080",
			Server:  rig.JVM{}.Tomcat(rig.Tomcat10, `<Connector address="::1" port="8080" maxThreads="6"/>`),
			Clients: []rig.Clients{{Address: "[::1]:8080", N: 30, Text: slowPage}}, Full: rig.Full{Busy: 6, Connections: 30},
			Says: rig.Says{Verdict: []string{"saturated max_threads"}},
		},
	), []deployment{
		{"a connector on a UNIX domain socket beside a TCP one", func(c *rig.Case) {
			socket := filepath.Join(c.Dir, "web.sock")
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, pool+`<Connector protocol="org.apache.coyote.http11.Http11NioProtocol" unixDomainSocketPath="`+socket+`" maxThreads="3"/>`)
			c.Until("the socket is there", func() bool { _, err := os.Stat(socket); return err == nil })
			c.Hold(rig.Clients{Unix: socket, N: 10, Text: slowPage})
			c.Answers("127.0.0.1:8080")
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 3 of 3 threads busy on the UNIX socket"
			c.Ask(rig.Port).Verdict("ok")
		}},
	}, data(
		six("Spring Boot 4.0.9 (Tomcat 11)", func(c *rig.Case) *rig.Server {
			return c.BootOf("none", "tomcat", "4.0.9", rig.JVM{}, "server.tomcat.threads.max=6")
		}),
		foreign("jetty"), foreign("undertow"),
	))
}

func sharedExecutor(c *rig.Case) {
	s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Executor name="both" maxThreads="8" minSpareThreads="2" maxQueueSize="15"/>
<Connector port="8080" executor="both"/><Connector port="8090" executor="both"/>`)
	c.Answers("127.0.0.1:8080")
	c.Answers("127.0.0.1:8090")
	first := c.Hold(rig.Clients{N: 6, Text: slowPage})
	c.Hold(rig.Clients{Address: "127.0.0.1:8090", N: 2, Text: slowPage})
	c.Until("8 are served", func() bool {
		return first.Connected.Load() == 6 && s.Says(8080).Connections >= 6 && s.Says(8090).Connections >= 2
	})
	c.Wait(2 * time.Second)
	c.Hold(rig.Clients{N: 9, Text: slowPage})
	c.Hold(rig.Clients{Address: "127.0.0.1:8090", N: 3, Text: slowPage})
	c.Until("12 wait", func() bool { return s.Says(8080).Connections >= 15 && s.Says(8090).Connections >= 5 })
	c.Row.Truth = "8 of 8 threads busy (6 for this connector), 12 of 15 places of the queue"
	both := c.Ask(0)
	for _, p := range []int{8080, 8090} {
		l := both.Document.On(p)
		if l == nil {
			c.Holds(false, "no entry for %d", p)
			continue
		}
		c.Row.Said = l.Verdict.Status + " " + l.Verdict.Cause + ": " + l.Verdict.Summary
		c.Holds(l.Verdict.Cause == "max_threads", "%d: %s", p, l.Verdict.Cause)
	}
	both.Silent("6 of 8 threads", "2 of 8 threads")
}
