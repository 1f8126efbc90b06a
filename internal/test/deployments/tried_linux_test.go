package deployments

import (
	"errors"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// tried are what somebody has tried who wanted a server to take more, or what a server
// does whose handlers wait for something unusual.
func tried() []deployment {
	const waits = 20 // threads
	pool := []string{"protocol=HTTP/1.1", "port=8080", fmt.Sprint("maxThreads=", waits), fmt.Sprint("minSpareThreads=", waits)}
	flags := []string{"--max-threads", fmt.Sprint(waits), "--max-connections", "8192", "--interval", "3s"}
	return []deployment{
		{"maxConnections -1 and acceptCount 0 in server.xml, 300 clients", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector port="8080" maxThreads="6" maxConnections="-1" acceptCount="0"/>`)
			c.Answers("127.0.0.1:8080")
			w := c.Hold(rig.Clients{N: 300, Text: rig.Get("/slow.jsp?ms=60000")})
			c.Until("all are connected", func() bool { return s.Says(rig.Port).Busy == 6 && w.Connected.Load() == 300 })
			c.Row.Truth = s.Says(rig.Port).String() + ", 300 clients connected"
			said := c.Ask(rig.Port)
			said.Verdict("saturated max_threads")
			said.Silent("maxConnections from", "backlog_clamped")
		}},
		{"two connectors on one port, 127.0.0.1 and ::1, one of them full", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector address="127.0.0.1" port="8080" maxThreads="6" maxConnections="60"/><Connector address="::1" port="8080" maxThreads="40"/>`)
			c.Answers("127.0.0.1:8080")
			c.Answers("[::1]:8080")
			w := c.Hold(rig.Clients{N: 30, Text: rig.Get("/slow.jsp?ms=60000")})
			c.Until("all are connected", func() bool { return w.Connected.Load() == 30 })
			c.Row.Truth = s.Says(0).String() + " on 127.0.0.1, 30 clients there; nobody on ::1"
			said := c.Ask(rig.Port)
			for i := range said.Document.Listeners {
				l := &said.Document.Listeners[i]
				if got := l.Verdict.Status + " " + l.Verdict.Cause; l.Address == "[::1]:8080" {
					c.Holds(got == "ok ", "of ::1 %q", got)
				} else {
					c.Row.Said = got + ": " + l.Verdict.Summary
					c.Holds(got == "saturated max_threads", "of 127.0.0.1 %q", got)
				}
			}
		}},
		{"a handler that asks for the client's name (enableLookups) while the name server does not answer", func(c *rig.Case) {
			c.DeafNameServer()
			s := c.Embedded(rig.JVM{}, append(pool, "enableLookups=true")...)
			c.Answers("127.0.0.1:8080")
			c.Do("ip", "address", "replace", "10.88.0.1/32", "dev", "lo")
			c.Hold(rig.Clients{Address: "10.88.0.1:8080", N: 60, Text: rig.Get("/?lookup=1&ms=60000")})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy == waits && s.Says(rig.Port).Connections >= 60 })
			c.Row.Truth = s.Says(rig.Port).String() + "; each waits for 60 s before it asks for the name"
			said := c.Ask(rig.Port, flags...)
			said.Verdict("saturated max_threads", "saturated downstream")
			if s.Says(rig.Port).Busy < waits {
				c.Must(errors.New("the load ended by itself"))
			}
		}},
		{"handlers that wait for one lock (synchronized)", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, pool...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/?lock=600000")})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy == waits && s.Says(rig.Port).Connections >= 60 })
			c.Row.Truth = s.Says(rig.Port).String() + "; one sleeps with the lock, the others wait for it"
			said := c.Ask(rig.Port, flags...)
			said.Verdict("saturated max_threads")
			said.Names("waiting_inside")
		}},
		{"virtual threads pinned by synchronized, Java 21", func(c *rig.Case) {
			pinned(c, c.JavaOf(rig.Java21), true)
		}},
		{"virtual threads that wait in synchronized, Java 25", func(c *rig.Case) {
			pinned(c, c.Java25(), false)
		}},
		{"Spring WebFlux on Netty, 60 handlers that wait without a thread", func(c *rig.Case) {
			s := flux(c)
			w := c.Hold(rig.Clients{N: 60, Text: rig.Get("/waits?ms=60000")})
			c.Until("all are connected", func() bool { return w.Connected.Load() == 60 })
			c.Row.Truth = s.Says(rig.Port).String() + "; 60 requests in service, none waits for a thread"
			said := c.Ask(rig.Port)
			said.Verdict("ok")
			said.Silent("max_threads", "of 200")
			c.Row.Unknown = true
		}},
		{"Spring WebFlux on Netty, 60 handlers that block its event loops", func(c *rig.Case) {
			s := flux(c)
			w := c.Hold(rig.Clients{N: 60, Text: rig.Get("/blocks?ms=60000")})
			c.Until("all are connected", func() bool { return w.Connected.Load() == 60 })
			c.Wait(2 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; 60 requests, at most %d in a handler (an event loop each), %d answered", s.Says(rig.Port), 4, w.Answered.Load())
			said := c.Ask(rig.Port, "--interval", "3s")
			said.Verdict("ok", "warning")
			said.Silent("nothing is held up", "nothing is seen to wait", "max_threads")
			said.Names("to be read")
			c.Row.Unknown = true
		}},
	}
}

// pinned has 40 clients ask virtual threads that wait with a lock, or for it: on a Java
// where such a thread keeps its carrier, there is one for each CPU.
func pinned(c *rig.Case, java string, keeps bool) {
	s := c.Embedded(rig.JVM{Java: java}, "protocol=HTTP/1.1", "port=8080", "useVirtualThreads=true")
	c.Answers("127.0.0.1:8080")
	c.Hold(rig.Clients{N: 10, Text: rig.Get("/?lock=600000")})
	c.Until("the first are connected", func() bool { return s.Says(rig.Port).Connections >= 10 })
	c.Wait(2 * time.Second)
	w := c.Hold(rig.Clients{N: 30, Text: rig.Get("/?lock=600000")})
	c.Until("all are connected", func() bool { return w.Connected.Load() == 30 && s.Says(rig.Port).Connections >= 40 })
	c.Wait(2 * time.Second)
	c.Row.Truth = s.Says(rig.Port).String() + "; 10 requests, and 30 two seconds later"
	said := c.Ask(rig.Port, "--interval", "3s")
	if keeps {
		c.Row.Truth += "; two have the carriers, and the 30 are not begun"
		said.Verdict("warning")
		said.Silent("nothing is held up", "threads.max", "maxThreads from")
		said.Names("to be read")
		c.Row.Unknown = true
		return
	}
	c.Row.Truth += "; all are begun, and one has the lock"
	said.Verdict("ok")
}

// flux starts the application on Netty.
func flux(c *rig.Case) *rig.Server {
	s := c.Java(rig.JVM{Main: []string{"-jar", c.FluxApp()}})
	c.Answers("127.0.0.1:8080")
	return s
}
