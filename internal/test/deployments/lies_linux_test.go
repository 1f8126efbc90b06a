package deployments

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// nobody is a user who may read little.
func nobody() *syscall.Credential {
	return &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{}}
}

// lies are servers whose configuration does not say what is in force. An agent is asked
// as well.
func lies() []deployment {
	full := func(name string, clients, busy, held int, server rig.Start, silent []string, verdicts ...string) rig.Overload {
		return rig.Overload{
			Name: name, Server: server, Clients: []rig.Clients{{N: clients, Text: rig.Get("/slow.jsp?ms=600000")}},
			Full: rig.Full{Busy: busy, Connections: held}, Agent: true,
			Says: rig.Says{Verdict: verdicts, Silent: silent},
		}
	}
	standalone := func(attributes string, set ...string) rig.Start {
		return func(c *rig.Case) *rig.Server {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector port="8080" minSpareThreads="2" `+attributes+`/>`)
			for i, one := range set { // NAME=VALUE over JMX
				if i == 0 {
					c.Answers("127.0.0.1:8080")
				}
				s.SetText(one)
			}
			return s
		}
	}
	edited := func(name, to string, verdicts ...string) rig.Overload {
		return full(name, 23, fewThreads, fewConnections, func(c *rig.Case) *rig.Server {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, fewConnector)
			c.Answers("127.0.0.1:8080")
			text, err := os.ReadFile(filepath.Join(c.Dir, "base/conf/server.xml"))
			c.Must(err)
			c.Write("base/conf/server.xml", strings.ReplaceAll(string(text), fewAttributes, to))
			return s
		}, []string{"from 200", "from 8192", "of 200 threads", "of 8,192"}, verdicts...)
	}
	spring := func(name string, clients, busy, held int, server rig.Start, says rig.Says) rig.Overload {
		o := full(name, clients, busy, held, server, nil)
		o.Clients[0].Text, o.Says = rig.Get("/hello?ms=600000"), says
		return o
	}
	return slices.Concat(data(
		full("limits raised over JMX while it runs: 6 to 40 threads, 20 to 200 connections, 60 clients", 60, 40, 60,
			standalone(`maxThreads="6" maxConnections="20"`, "maxThreads=40", "maxConnections=200"),
			[]string{"from 6 to", "of 6 threads", "from 20 to", "because Tomcat holds"}, "saturated max_threads"),
		full("limits raised over JMX: 6 to 40 threads, 30 clients", 30, 30, 30, standalone(`maxThreads="6" maxConnections="200"`, "maxThreads=40"),
			[]string{"from 6 to", "of 6 threads"}, "ok"),
		full("connections lowered over JMX to 15, threads enough, 40 clients", 40, 15, 15,
			standalone(`maxThreads="60" maxConnections="8192" acceptCount="100"`, "maxConnections=15"),
			[]string{"restart the server", "from 8192", "from 8,192"}, "saturated max_connections", "warning"),
		edited("server.xml edited after the start: larger limits, not yet in force", `maxThreads="200" maxConnections="8192" acceptCount="5"`, "saturated max_connections", "losing max_connections"),
		full("maxConnections 6 smaller than maxThreads 40", 12, 6, 6, standalone(`maxThreads="40" maxConnections="6" acceptCount="50"`),
			[]string{"maxThreads from", "threads are busy"}, "saturated max_connections"),
		full("acceptCount 1, 1 thread, 2 connections, 4 clients", 4, 1, 2, standalone(`maxThreads="1" maxConnections="2" acceptCount="1"`), nil, "saturated max_connections"),
		spring("threads.max in a profile that is not active", 30, 6, 30, func(c *rig.Case) *rig.Server {
			c.Write("config/application.properties", "server.tomcat.threads.max=6\n")
			c.Write("config/application-prod.properties", "server.tomcat.threads.max=200\n")
			return c.Boot("none", rig.JVM{})
		}, rig.Says{Verdict: []string{"saturated max_threads"}, Silent: []string{"from 200", "of 200 threads"}}),
		spring("the environment overrules the file, seen by somebody who may not read it", 25, 6, 20, func(c *rig.Case) *rig.Server {
			c.Must(os.Chmod(c.Write("config/application.properties", "server.tomcat.threads.max=60\nserver.tomcat.max-connections=500\n"), 0o644)) //nolint:gosec // anybody may
			c.Viewer = nobody()
			return c.Boot("none", rig.JVM{Env: []string{"SERVER_TOMCAT_THREADS_MAX=6", "SERVER_TOMCAT_MAXCONNECTIONS=20"}})
		}, rig.Says{
			Verdict: []string{"saturated max_threads", "saturated max_connections", "warning", "ok"}, Names: []string{"limits_unknown"},
			Silent: []string{"from 60", "from 500", "nothing is held up", "nothing is seen to wait"}, Unknown: true,
		}),
	), []deployment{
		{"two connectors share an executor of 8 threads, TLS and plain", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, rig.InServer("", `<Executor name="pool" namePrefix="pool-" maxThreads="8" minSpareThreads="8"/>
<Connector port="8080" executor="pool"/>`+tlsConnector(c, `port="8443" executor="pool"`)))
			c.Answers("127.0.0.1:8080")
			c.Answers("127.0.0.1:8443")
			c.Hold(rig.Clients{Address: "127.0.0.1:8443", N: 5, Text: rig.Get("/slow.jsp?ms=600000"), TLS: rig.Unverified()})
			c.Until("five threads are busy", func() bool { return s.Says(8443).Connections >= 5 })
			c.Wait(2 * time.Second)
			c.Hold(rig.Clients{N: 12, Text: rig.Get("/slow.jsp?ms=600000")})
			c.Until("all are connected", func() bool { return s.Says(rig.Port).Connections >= 12 })
			c.Row.Truth = fmt.Sprintf("%d connections on 8443, whose requests came first, %d on 8080, for 8 threads", s.Says(8443).Connections-1, s.Says(rig.Port).Connections-1)
			c.Both(rig.Port, "saturated max_threads", "warning", "ok").Silent("3 of 8 threads", "nothing is held up")
		}},
	})
}
