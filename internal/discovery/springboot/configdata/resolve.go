package configdata

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
)

// resolve lists what is at the locations, in rising order of precedence:
// first what belongs to no profile, then, when the profiles are known, theirs.
func (im *importer) resolve(locs []location, parent string, profiles []string) []candidate {
	out := make([]candidate, 0, len(locs))
	for _, loc := range locs {
		out = append(out, im.resolveOne(loc, parent, profiles)...)
	}
	return out
}

func (im *importer) resolveOne(loc location, parent string, profiles []string) []candidate {
	switch s := scheme(loc.value); s {
	case "", "file", "classpath", "resource":
		out := im.standard(loc, parent, "")
		for _, profile := range profiles {
			out = append(out, im.standard(loc, parent, profile)...)
		}
		return out
	case "configtree":
		return im.configTrees(loc)
	case "env":
		return im.variable(loc)
	default:
		im.unavailable("settings imported from "+loc.shown(), "they are not on this machine (spring.config.import)",
			"ask the server behind it, or give the limits with --max-connections, --accept-count, --max-threads")
		return nil
	}
}

// standard lists the files of one group of locations for one profile.
func (im *importer) standard(loc location, parent, profile string) []candidate {
	var out []candidate
	for _, part := range loc.split() {
		at := against(part.value, parent)
		refs := references(part, at, profile, im.names)
		if len(refs) == 0 && !part.optional {
			im.unavailable("config location "+part.shown(), "its file extension is not one that Spring Boot loads", "")
		}
		found := len(out)
		for _, ref := range refs {
			out = append(out, im.referenced(ref)...)
		}
		if len(out) == found && !part.optional {
			im.mandatory(part, at)
		}
	}
	return out
}

// mandatory says that a directory is missing without which the application
// would not have started.
func (im *importer) mandatory(loc location, at string) {
	if !strings.HasSuffix(at, "/") || scheme(at) == "classpath" {
		return
	}
	dir, _, _ := strings.Cut(at, "*/")
	if _, err := im.p.List(filePath(dir)); err != nil {
		im.unavailable("config location "+loc.shown(), launch.Reason(err), "")
	}
}

// variable is the import of a variable that holds a whole file ("env:NAME", Boot 3.5).
func (im *importer) variable(loc location) []candidate {
	name, ext, ok := extensionHint(strings.TrimPrefix(loc.value, "env:"))
	if !ok {
		ext = "properties"
	}
	text, ok := im.env.Values[name]
	if !ok {
		if !loc.optional {
			im.unavailable("config of env "+name, "the variable is not known", "")
		}
		return nil
	}
	return []candidate{{
		id:   "env:" + name,
		load: func() ([]*properties.Document, error) { return im.parse(ext, []byte(text), "env "+name) },
	}}
}
