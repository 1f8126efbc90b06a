package classpath

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds of the search through the application's own classes.
const (
	maxClasses    = 4 << 20 // bytes of class files, uncompressed
	maxClassFile  = 256 << 10
	maxClassDepth = 12
	maxClassFiles = 1000 // files of exploded directories
	// maxClassEntries is the most classes of a jar, however small.
	maxClassEntries = 20_000
)

// hint is a name in a class file's constant pool that shows code which
// changes settings behind Spring's Environment.
type hint struct{ constant, what, why string }

func hints() []hint {
	const connector = "code that customises the web server"
	const behind = "it runs inside the application and may set other limits than the configuration"
	return []hint{
		{"TomcatConnectorCustomizer", connector, behind},
		{"TomcatProtocolHandlerCustomizer", connector, behind},
		{"WebServerFactoryCustomizer", connector, behind},
		{"TomcatServletWebServerFactory", connector, behind},
		{"TomcatReactiveWebServerFactory", connector, behind},
		{"EmbeddedServletContainer", connector, behind}, // Spring Boot 1
		{"setDefaultProperties", "default properties set by code", "they apply where no other source has the property"},
		{"setAdditionalProfiles", "profiles activated by code", "their files and documents apply too"},
		{"setEnvironmentPrefix", "a prefix of the environment's variables", "variables without it have no effect"},
		{"context/annotation/PropertySource", "files named by @PropertySource", "they apply where no other source has the property"},
		{"EnvironmentPostProcessor", "code that changes Spring's Environment", "it may add properties of any rank"},
	}
}

// Customisers searches the application's own classes (not its libraries)
// for code that may set what the configuration does not say.
func Customisers(p *launch.Process, c *ClassPath) ([]model.Unavailable, CodeLimits) {
	s := &classSearch{p: p, budget: maxClasses}
	for _, pl := range c.application {
		if dir := path.Clean(pl.Dir); pl.Dir != "" {
			// "java Main" has the working directory as its class path: that
			// may be the root of the file system, with /proc below it.
			if dir != "." && dir != "/" {
				s.directory(dir, 0)
			}
			continue
		}
		for _, name := range pl.names() {
			if strings.HasSuffix(name, ".class") && !isOfSpring(name) && s.budget > 0 {
				data, err := pl.read(p, name, maxClassFile)
				s.class(name, data, err)
			}
		}
	}
	if s.budget <= 0 {
		s.found = append(s.found, model.Unavailable{
			What: "code that customises the web server", Why: "the application has more classes than are searched for it",
		})
	}
	return s.found, s.limits
}

// isOfSpring leaves the classes of a merged jar out that are not the application's.
func isOfSpring(name string) bool {
	return strings.HasPrefix(name, "org/springframework/") || strings.HasPrefix(name, "org/apache/")
}

type classSearch struct {
	p      *launch.Process
	budget int
	found  []model.Unavailable
	limits CodeLimits
}

// directory walks an exploded class directory.
func (s *classSearch) directory(dir string, depth int) {
	entries, err := s.p.List(dir)
	if err != nil || depth > maxClassDepth {
		return
	}
	for _, e := range entries {
		full := JoinDir(dir, e.Name())
		switch {
		case s.budget <= 0:
			return
		case e.IsDir(): // links are not followed: they may lead in a circle
			s.directory(full, depth+1)
		case e.Type().IsRegular() && path.Ext(e.Name()) == ".class":
			data, err := s.p.Read(full, maxClassFile)
			s.class(full, data, err)
		}
		s.budget -= maxClasses / maxClassFiles
	}
}

// class looks for the hints in one class file.
func (s *classSearch) class(name string, data []byte, err error) {
	if err != nil {
		s.budget -= maxClassFile // it may have been inflated up to that size
		return
	}
	s.budget -= len(data) + maxClasses/maxClassEntries
	s.limits.read(className(name), data)
	for _, h := range hints() {
		if !bytes.Contains(data, []byte(h.constant)) {
			continue
		}
		u := model.Unavailable{
			What: h.what + " (" + h.constant[strings.LastIndexByte(h.constant, '/')+1:] + " in " + className(name) + ")",
			Why:  h.why, How: "compare with what the server says: enable server.tomcat.mbeanregistry and Actuator's metrics",
		}
		if !slices.Contains(s.found, u) && len(s.found) < 20 {
			s.found = append(s.found, u)
		}
	}
}

// className is the simple name of a class by its file's.
func className(file string) string { return strings.TrimSuffix(path.Base(file), ".class") }

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
