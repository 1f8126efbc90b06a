package deployments

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const pool = `<Connector port="8080" maxThreads="6" maxConnections="60"/>`

// slow is what thirty clients make of six threads of a standalone server.
func slow(name string, server rig.Start) rig.Overload {
	o := six(name, server)
	o.Clients = []rig.Clients{{N: 30, Text: slowPage}}
	return o
}

var slowPage = rig.Get("/slow.jsp?ms=60000")

// javas are servers on other Javas, and started in other ways.
func javas() []deployment {
	on := func(tomcat, java string) rig.Overload {
		return slow("Tomcat "+tomcat+" on Java "+java[:2], func(c *rig.Case) *rig.Server {
			return c.Tomcat(tomcat, rig.JVM{Java: c.JavaOf(java)}, pool)
		})
	}
	started := func(name string, jvm func(c *rig.Case, jar string) rig.JVM) rig.Overload {
		return six(name, func(c *rig.Case) *rig.Server { return c.Java(jvm(c, c.App("none", "tomcat", rig.BootVersion))) })
	}
	return data(
		on("9.0.117", rig.Java11), on("8.5.100", rig.Java11), on("10.1.59", rig.Java21), on("11.0.24", rig.Java21),
		started("an argument file (java @file) sets the threads", func(c *rig.Case, jar string) rig.JVM {
			return rig.JVM{Main: []string{"@" + c.Write("arguments", "-Dserver.tomcat.threads.max=6\n-jar "+jar+"\n")}}
		}),
		started("JDK_JAVA_OPTIONS sets the threads", func(_ *rig.Case, jar string) rig.JVM {
			return rig.JVM{Main: []string{"-jar", jar}, Env: []string{"JDK_JAVA_OPTIONS=-Dserver.tomcat.threads.max=6"}}
		}),
		started("an unpacked jar, its own configuration edited", func(c *rig.Case, jar string) rig.JVM {
			unpacked := filepath.Join(c.Dir, "unpacked")
			c.Must(os.Mkdir(unpacked, 0o755))
			c.DoIn(unpacked, "jar", "xf", jar)
			file := filepath.Join(unpacked, "BOOT-INF/classes/application.properties")
			text, err := os.ReadFile(file)
			c.Must(err)
			c.Must(os.WriteFile(file, append(text, "\nserver.tomcat.threads.max=6\n"...), 0o600))
			return rig.JVM{Main: []string{"-cp", unpacked, "org.springframework.boot.loader.launch.JarLauncher"}}
		}),
		started("a placeholder with a default of the environment", func(_ *rig.Case, jar string) rig.JVM {
			return rig.JVM{Main: []string{"-jar", jar, "--server.tomcat.threads.max=${POOL:${OTHER:9}}"}, Env: []string{"POOL=6"}}
		}),
		started("the shell's exec of a script with a wrapper's name", func(c *rig.Case, jar string) rig.JVM {
			script := c.Write("run.sh", "#!/bin/sh\nexec -a shop \"$@\"\n")
			return rig.JVM{Wrap: []string{"bash", script}, Main: []string{"-jar", jar, "--server.tomcat.threads.max=6"}}
		}),
	)
}

// more are connectors and applications that are not everybody's.
func more() []deployment {
	watched := func(name, text string, held int, server rig.Start) rig.Overload {
		o := slow(name, server)
		o.Clients[0].Text, o.Full, o.Ask = text, rig.Full{Busy: 5, Connections: held, OrMore: true}, []string{"--interval", "3s"}
		o.Lasting = true
		return o
	}
	const war = "org.jolokia:jolokia-war:1.7.2:war"
	runner := watched("webapp-runner 9.0 with Jolokia's war, its limits as arguments", rig.Half("/"), 30, func(c *rig.Case) *rig.Server {
		return c.Java(rig.JVM{Main: []string{"-jar", c.Artifact("com.heroku:webapp-runner:9.0.89.0"), "--port", "8080", "-AmaxThreads=6", "-AmaxConnections=60", "-AconnectionTimeout=600000", c.Artifact(war)}})
	})
	runner.Says = rig.Says{Verdict: []string{"saturated max_threads", "ok", "warning"}, Silent: []string{"of 200 threads", "from 200 to", "nothing is held up"}, UnknownWithoutCause: true}
	two := slow("two applications in one Tomcat, one of them slow", func(c *rig.Case) *rig.Server {
		home := c.Distribution(rig.Tomcat10)
		base := c.Base(home, pool)
		c.Must(os.CopyFS(filepath.Join(base, "webapps/shop"), os.DirFS(filepath.Join(base, "webapps/ROOT"))))
		return c.Catalina(home, base, rig.JVM{})
	})
	two.Clients = []rig.Clients{{N: 3, Text: slowPage}, {N: 27, Text: rig.Get("/shop/slow.jsp?ms=60000")}}
	return slices.Concat(data(
		watched("an NIO2 connector of a standalone Tomcat", slowPage, 5,
			rig.JVM{}.Tomcat(rig.Tomcat10, `<Connector protocol="org.apache.coyote.http11.Http11Nio2Protocol" port="8080" maxThreads="6" maxConnections="60"/>`)),
		watched("APR/native, Tomcat 8.5.100", slowPage, 30, func(c *rig.Case) *rig.Server {
			c.NeedsFile(tomcatNative+"/libtcnative-1.so", "libtcnative-1")
			return c.Tomcat("8.5.100", rig.JVM{VM: []string{"-Djava.library.path=" + tomcatNative}}, rig.InServer(`<Listener className="org.apache.catalina.core.AprLifecycleListener"/>`,
				`<Connector protocol="org.apache.coyote.http11.Http11AprProtocol" port="8080" maxThreads="6" maxConnections="60"/>`))
		}),
		two,
	), []deployment{
		{"server-sent events whose clients have half-closed", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.threads.max=10")
			c.Answers("127.0.0.1:8080")
			w := c.Hold(rig.Clients{N: 11, Text: rig.Get("/events?ms=300")})
			c.Until("all have events", func() bool { return w.Answered.Load() == 11 })
			w.HalfClose(11)
			c.Until("nobody is served", func() bool { return s.Says(rig.Port).Busy == 0 })
			c.Row.Truth = s.Says(rig.Port).String() + ", 11 streams whose clients have shut down their end"
			c.Ask(rig.Port).Verdict("ok").Silent("11 of 10", "10 of 10 threads", "all 10 threads")
		}},
	}, data(
		watched("Jolokia's war in Tomcat 9.0.117, 30 clients whose request has half a body", rig.Half("/jolokia/"), 30, func(c *rig.Case) *rig.Server {
			home := c.Distribution("9.0.117")
			base := c.Base(home, `<Connector port="8080" maxThreads="6" maxConnections="60" connectionTimeout="600000"/>`)
			c.Do("cp", c.Artifact(war), filepath.Join(base, "webapps/jolokia.war"))
			return c.Catalina(home, base, rig.JVM{})
		}), runner,
	))
}

// tomcatNative is where Debian puts it.
const tomcatNative = "/usr/lib/x86_64-linux-gnu"
