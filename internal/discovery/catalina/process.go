package catalina

import (
	"os"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds on what a process can make this package read.
const (
	maxServerXML  = 1 << 20
	maxProperties = 256 << 10
	maxLines      = 20_000 // of catalina.properties
	// catalina.jar has 2 MB. archive/zip makes some 300 bytes of each 46 of it.
	maxJar         = 4 << 20
	maxDepth       = 64     // levels of elements; server.xml needs seven
	maxElements    = 20_000 // elements and attributes
	maxConnectors  = 256    // and executors
	maxEntities    = 100
	maxEntityText  = 64 << 10 // what one entity may add to the document
	maxReplacedSum = 1 << 20  // what all substitutions may grow to
)

// Process is what a Tomcat's JVM was started with, where it could be read.
type Process struct {
	// Properties are the system properties given to the JVM (-D).
	Properties map[string]Property
	Args       []string          // arguments of the main class, Bootstrap
	Env        map[string]string // nil when it could not be read
	// Partial: Properties may lack what the environment gives the JVM
	// (JAVA_TOOL_OPTIONS), which could not be read.
	Partial bool
	// Open opens a regular file as the process sees it: absolute paths below
	// its root, relative ones below its working directory, never waiting for
	// the other end of a fifo.
	Open func(path string) (*os.File, error)
}

// Property is a system property and where it was given: "-Dname", "-Dname in
// JAVA_TOOL_OPTIONS", "conf/catalina.properties".
type Property struct {
	Text   string
	Kind   model.SourceKind
	Source string
}

func (p *Process) property(name string) string { return p.Properties[name].Text }

// read returns the whole of a file of at most limit bytes.
func (p *Process) read(path string, limit int64) ([]byte, error) {
	f, err := p.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return bounded.Read(f, path, limit, 0)
}
