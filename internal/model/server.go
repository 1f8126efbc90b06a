package model

import "strings"

// Server is a kind of server that may stand behind a listener. This is the one place that
// knows their names: another kind is another value in Servers.
type Server struct {
	Name  string    // in Connector.Server
	Title string    // as people write it; "" for none of its own
	Jars  [2]string // by which it is recognised among an application's libraries, without their versions
	JVM   bool      // it runs in one

	// Limits: it admits clients as Tomcat does, by a latch before accept(2) and a pool of
	// threads, and its limits are read: maxConnections, acceptCount, maxThreads.
	Limits bool
}

// ServerTomcat is Apache Tomcat, in an application or alone.
func ServerTomcat() Server {
	return Server{Name: "tomcat", Title: "Tomcat", Jars: [2]string{"tomcat-embed-core"}, JVM: true, Limits: true}
}

// ServerJVM is a JVM in which no known server was recognised.
func ServerJVM() Server { return Server{Name: "jvm", JVM: true} }

// ServerOther is a process that is known to be something else.
func ServerOther() Server { return Server{Name: "other"} }

// Servers are all kinds. Of several among an application's libraries the first serves, as
// Spring Boot takes them.
func Servers() [6]Server {
	return [6]Server{
		ServerTomcat(),
		{Name: "jetty", Title: "Jetty", Jars: [2]string{"jetty-server"}, JVM: true},
		{Name: "undertow", Title: "Undertow", Jars: [2]string{"undertow-core"}, JVM: true},
		{Name: "netty", Title: "Netty", Jars: [2]string{"reactor-netty-http", "reactor-netty"}, JVM: true}, // the latter until Spring Boot 2.3
		ServerJVM(),
		ServerOther(),
	}
}

// ServerNamed is the kind that has a name.
func ServerNamed(name string) (s Server, known bool) {
	for _, s := range Servers() {
		if s.Name == name {
			return s, true
		}
	}
	return Server{Name: name}, false
}

// Kind is the server that stands there; the zero value where that is not known.
func (c *Connector) Kind() Server {
	if c == nil {
		return Server{}
	}
	s, _ := ServerNamed(c.Server)
	return s
}

// KnownHTTP means that its configuration, or its kind, shows that it does: of an application's further ports, and of a server that is
// none of the kinds, the protocol is not known.
func (c *Connector) KnownHTTP() bool {
	return c != nil && !strings.HasPrefix(c.Protocol, "ajp") && (strings.HasPrefix(c.Protocol, "http") || c.IsTomcat() || c.Kind().Title != "")
}

// IsTomcat means that its limits are a Tomcat's, of which the settings are known.
func (c *Connector) IsTomcat() bool {
	return c != nil && (c.Kind().Limits || c.Server == "" && (c.MaxConnections != nil || c.MaxThreads != nil || c.AcceptCount != nil))
}

// IsJVM goes by the name of a process's main thread, which any user may read:
// java, or jsvc (jsvc.exec) of commons-daemon.
func IsJVM(comm string) bool { return comm == "java" || strings.HasPrefix(comm, "jsvc") }
