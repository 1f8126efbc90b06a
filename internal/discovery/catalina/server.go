package catalina

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// ErrGenerated says that the server was started with -useGeneratedCode: its
// connectors are compiled and server.xml is not read.
var ErrGenerated = errors.New("the connectors come from generated code (-useGeneratedCode), not from server.xml")

// errNotServer is a server.xml that Catalina would not start from.
var errNotServer = errors.New("the outermost element is not <Server>")

// Server is a standalone Tomcat as server.xml configures it.
type Server struct {
	File        string // "conf/server.xml"
	Version     Version
	Connectors  []Connector
	Unavailable []model.Unavailable
}

// Connector is one <Connector>.
type Connector struct {
	model.Connector
	Port    uint16     // with the server's portOffset; 0: chosen by the system
	Address netip.Addr // not valid: all addresses, or a name
	// Scheme and Endpoint are the first and last part of the thread names:
	// http or ajp; nio, nio2, apr, bio, or "" for a class that is not Tomcat's.
	Scheme, Endpoint string
	// NamePrefix begins the names of the threads of a shared executor.
	NamePrefix string
	Line       int // of <Connector
}

// Load reads the configuration of a Tomcat. The server is returned with
// what is known of it (the version) also when server.xml cannot be read.
func Load(p *Process) (*Server, error) {
	s := &Server{File: p.shortName(p.configFile())}
	var err error
	if s.Version, err = p.version(); err != nil {
		s.missing("Tomcat's version", err, "the newest version's defaults are assumed")
	}
	if p.generated() {
		return s, ErrGenerated
	}
	data, err := p.read(p.configFile(), maxServerXML)
	if err != nil {
		return s, err
	}
	doc, err := parseXML(data)
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.File, err)
	}
	properties, err := p.systemProperties()
	from := p.newSources(properties, s.Version)
	if err != nil {
		s.missing("catalina.properties", err, "values in "+s.File+" that come from it are not known")
		from.unread = unread{what: p.shortName(p.propertiesFile()), first: true}
	}
	return s, s.build(doc, from)
}

func (s *Server) missing(what string, why error, how string) {
	s.Unavailable = append(s.Unavailable, model.Unavailable{What: what, Why: why.Error(), How: how})
}

func (s *Server) build(doc *document, from *sources) error {
	if doc.root.name != "Server" {
		return fmt.Errorf("%s: %w", s.File, errNotServer)
	}
	for _, name := range doc.included {
		s.Unavailable = append(s.Unavailable, model.Unavailable{
			What: fmt.Sprintf("entity &%s; in %s", name, s.File),
			Why:  "it stands for markup or for another file, which is not read",
			How:  "give the limits by hand: --max-connections, --accept-count, --max-threads",
		})
	}
	if from.useEnv && from.env == nil {
		s.Unavailable = append(s.Unavailable, model.Unavailable{
			What: "values with ${…} in " + s.File, Why: "they may come from the environment, which could not be read",
		})
	}
	if len(from.custom) > 0 {
		s.Unavailable = append(s.Unavailable, model.Unavailable{
			What: "a property source of its own (org.apache.tomcat.util.digester.PROPERTY_SOURCE)",
			Why:  "what it answers for ${…} in " + s.File + " is known to the server only",
		})
	}
	r := reader{server: s, from: from}
	offset := r.offset(doc.root)
	doc.root.each("Service", func(service *element) {
		r.service(service, offset)
	})
	return nil
}

// reader turns elements into connectors.
type reader struct {
	server *Server
	from   *sources
}

// offset is Server's portOffset, which is added to every port; negative where it
// is not known.
func (r *reader) offset(root *element) int {
	if !r.server.Version.has(portOffsets()...) {
		return 0
	}
	offset := r.int(root, "portOffset")
	if offset.hidden {
		return -1
	}
	return max(0, offset.value)
}

// port is the element's port with the offset (Connector.getPortWithOffset), 0
// where either is not known.
func (r *reader) port(e *element, offset int) uint16 {
	port := r.int(e, "port")
	if !port.ok || port.value <= 0 || offset < 0 || port.value+offset > 1<<16-1 {
		return 0
	}
	return uint16(port.value + offset)
}

// once says something, however many elements it is true of.
func (r *reader) once(what, why string) {
	u := model.Unavailable{What: what, Why: why}
	if !slices.Contains(r.server.Unavailable, u) {
		r.server.Unavailable = append(r.server.Unavailable, u)
	}
}

// service reads connectors and executors in the order of the file: a connector
// finds only executors that are in front of it (ConnectorCreateRule).
func (r *reader) service(service *element, offset int) {
	executors := map[string]*executor{}
	gate := r.gate(service)
	for _, child := range service.children {
		if len(r.server.Connectors)+len(executors) >= maxConnectors {
			r.once("connectors of "+r.server.File, fmt.Sprintf("more than %d connectors and executors", maxConnectors))
			return
		}
		switch child.name {
		case "Executor":
			e := r.executor(child)
			if executors[e.name] == nil { // the first of a name stays (StandardService.addExecutor)
				executors[e.name] = e
			}
		case "Connector":
			if c := r.connector(child, offset, executors); c != nil {
				c.Gate = gate
				r.server.Connectors = append(r.server.Connectors, *c)
			}
		}
	}
}

// semaphoreClass bounds how many requests are served at once: the others hold their
// thread and wait in it (SemaphoreValve.invoke, concurrency 10 by default).
const semaphoreClass = "org.apache.catalina.valves.SemaphoreValve"

// gate is the narrowest SemaphoreValve below an element, nil without one. Who does not
// wait in it (block="false") holds no thread.
func (r *reader) gate(e *element) (narrowest *model.Setting[int]) {
	for _, child := range e.children {
		found := r.gate(child)
		if child.name == "Valve" && r.text(child, "className").text == semaphoreClass && r.text(child, "block").text != "false" {
			found = pick(r, r.int(child, "concurrency"), "concurrency", 10, plain, nil)
			if found != nil {
				found.Source += ", SemaphoreValve"
			}
		}
		if found != nil && (narrowest == nil || found.Value < narrowest.Value) {
			narrowest = found
		}
	}
	return narrowest
}
