package deployments

import (
	"os"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// thirty clients ask for an answer that does not come.
var thirty = hello(30)

func hello(n int) []rig.Clients { return []rig.Clients{{N: n, Text: rig.Get("/hello?ms=60000")}} }

// six is what thirty clients make of a pool of six threads, and what is to be said of it.
func six(name string, server rig.Start) rig.Overload {
	return rig.Overload{
		Name: name, Server: server, Clients: thirty,
		Full: rig.Full{Busy: 6, Connections: 30},
		Says: rig.Says{Verdict: []string{"saturated max_threads"}},
	}
}

// inCode are servers whose limits are set in their code, or where few would look.
func inCode() []deployment {
	limits := func(name, variant string) rig.Overload {
		return rig.Overload{
			Name: name, Server: rig.JVM{}.Boot(variant), Clients: hello(60),
			Full: rig.Full{Busy: 7, Connections: 17, Exactly: true}, Note: ", acceptCount 9", Ask: []string{"--interval", "3s"},
			Says: rig.Says{
				Verdict: []string{"losing max_connections"},
				Silent:  []string{"restart the server", "from 200 to", "from 8192 to"},
			},
		}
	}
	return slices.Concat(data(
		limits("limits set by a WebServerFactoryCustomizer", "customizer"),
		limits("setDefaultProperties and @PropertySource", "defaults"),
		rig.Overload{
			Name:    "an executor of virtual threads set in code, 400 clients",
			Server:  rig.JVM{Java: rig.ModernJava}.Boot("virtual", "server.tomcat.threads.max=20"),
			Clients: hello(400), Full: rig.Full{Any: true, Connections: 400, Connected: 400}, Note: ", all in service",
			Says: rig.Says{Verdict: []string{"ok"}, Silent: []string{"of 20 threads busy", "threads.max from", `"max_threads"]`}},
		},
	), []deployment{
		{"limits lowered over JMX while it runs: 200 to 5 threads, 8192 to 15 connections", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.threads.min-spare=2")
			c.Answers("127.0.0.1:8080")
			s.Set("maxThreads", 5)
			s.Set("maxConnections", 15)
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/hello?ms=60000")})
			c.Until("all are in use", func() bool { return s.Says(rig.Port).Connections >= 15 })
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String()
			c.Ask(rig.Port, "--interval", "3s").Silent("restart the server", "backlog_clamped")
		}},
	}, data(
		six("only environment variables", rig.JVM{Env: []string{"SERVER_TOMCAT_THREADS_MAX=6", "SERVER_TOMCAT_MAXCONNECTIONS=40", "SERVER_PORT=8080"}}.Boot("none")),
		six("a symbolic link to the jar, started elsewhere, settings in config/*/", func(c *rig.Case) *rig.Server {
			c.Write("run/config/prod/application.yaml", "server:\n  tomcat:\n    threads: {max: 6}\n")
			c.Must(os.Symlink(c.App("none", "tomcat", rig.BootVersion), c.Dir+"/current.jar"))
			return c.Java(rig.JVM{Main: []string{"-jar", c.Dir + "/current.jar"}, Dir: c.Dir + "/run"})
		}),
	))
}
