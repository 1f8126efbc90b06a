package springboot

import "bytes"

// CodeLimits names, for each limit of the connector, the code that may set it
// behind the configuration's back: "setMaxThreads in WebConfig". A limit that no
// code was found for has "". Only the application's own classes are searched, so
// "" is no proof.
type CodeLimits struct {
	MaxConnections string // AbstractProtocol.setMaxConnections
	AcceptCount    string // AbstractProtocol.setAcceptCount, setBacklog
	MaxThreads     string // AbstractProtocol.setMaxThreads, setExecutor
	// Defaults: properties of the lowest rank, which replace the server's defaults
	// (SpringApplication.setDefaultProperties, @PropertySource).
	Defaults string
	// Any: code that may add properties of any rank (EnvironmentPostProcessor).
	Any string
}

// read scans one class file's constant pool, which has the names of the
// methods that the class calls. Calls on an additional connector, which the
// class makes itself, say nothing of the application's own.
func (l *CodeLimits) read(class string, data []byte) {
	note := func(to *string, constants ...string) {
		for _, c := range constants {
			if *to == "" && bytes.Contains(data, []byte(c)) {
				*to = c + " in " + class
			}
		}
	}
	note(&l.Defaults, "setDefaultProperties")
	if l.Defaults == "" && bytes.Contains(data, []byte("context/annotation/PropertySource")) {
		l.Defaults = "@PropertySource in " + class
	}
	note(&l.Any, "EnvironmentPostProcessor", "setEnvironmentPrefix")
	if !ofTomcat(data) || onlyAdditional(data) {
		return
	}
	note(&l.MaxConnections, "setMaxConnections")
	note(&l.AcceptCount, "setAcceptCount", "setBacklog")
	note(&l.MaxThreads, "setMaxThreads", "setExecutor")
	if bytes.Contains(data, []byte("setProperty")) || bytes.Contains(data, []byte("setAttribute")) {
		note(&l.MaxConnections, "maxConnections")
		note(&l.AcceptCount, "acceptCount")
		note(&l.MaxThreads, "maxThreads")
	}
}

// ofTomcat distinguishes a class that has to do with Tomcat's connectors from one whose
// setMaxConnections is a connection pool's.
func ofTomcat(data []byte) bool {
	for _, name := range []string{"org/apache/coyote/", "org/apache/catalina/connector/", "TomcatServletWebServerFactory", "TomcatReactiveWebServerFactory", "EmbeddedServletContainer"} {
		if bytes.Contains(data, []byte(name)) {
			return true
		}
	}
	return false
}

// onlyAdditional: the class adds connectors of its own and customises none.
func onlyAdditional(data []byte) bool {
	adds := bytes.Contains(data, []byte("addAdditionalTomcatConnectors")) || bytes.Contains(data, []byte("addAdditionalConnectors"))
	return adds && !bytes.Contains(data, []byte("TomcatConnectorCustomizer")) && !bytes.Contains(data, []byte("TomcatProtocolHandlerCustomizer"))
}
