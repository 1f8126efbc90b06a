package catalina

import (
	"path"
	"path/filepath"
	"strings"
)

// home is catalina.home: the property, else what Bootstrap makes of the
// working directory (its parent when bootstrap.jar lies there).
func (p *Process) home() string {
	if home := p.property("catalina.home"); home != "" {
		return home
	}
	if f, err := p.Open("bootstrap.jar"); err == nil {
		_ = f.Close()
		return ".."
	}
	return "."
}

// base is catalina.base, where conf is; it is catalina.home unless several
// instances share one installation.
func (p *Process) base() string {
	if base := p.property("catalina.base"); base != "" {
		return base
	}
	return p.home()
}

// inBase is a path below catalina.base; an absolute one stays (Catalina.
// configFile).
func (p *Process) inBase(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return path.Join(p.base(), name)
}

// shortName is a file's name for people: without catalina.base in front.
func (p *Process) shortName(name string) string {
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(p.base(), "/")+"/"); ok {
		return rest
	}
	return name
}

// configFile is the file given with -config, or conf/server.xml.
func (p *Process) configFile() string {
	file := "conf/server.xml"
	for i, arg := range p.Args {
		if arg == "-config" && i+1 < len(p.Args) {
			file = p.Args[i+1] // the last one counts, as in Catalina.arguments
		}
	}
	return p.inBase(file)
}

// generated says that the connectors come from compiled code instead of
// server.xml (Catalina.useGeneratedCode).
func (p *Process) generated() bool {
	for _, arg := range p.Args {
		if arg == "-useGeneratedCode" {
			return true
		}
	}
	return false
}
