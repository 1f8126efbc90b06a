package configdata

import (
	"path"
	"strings"
)

// location is a place to look for config files (ConfigDataLocation).
type location struct {
	value    string // without "optional:"
	optional bool
}

func parseLocation(text string) location {
	value, optional := strings.CutPrefix(text, "optional:")
	return location{value, optional}
}

func parseLocations(list []string) []location {
	var out []location
	for _, text := range list {
		if loc := parseLocation(text); strings.TrimSpace(loc.value) != "" {
			out = append(out, loc)
		}
	}
	return out
}

// String is the location as it was written.
func (l location) String() string { return l.optionally(l.value) }

func (l location) optionally(value string) string {
	if l.optional {
		return "optional:" + value
	}
	return value
}

// shown is the location for people. Of one that is no file only the server is
// shown: no user, no password, no query.
func (l location) shown() string {
	switch scheme(l.value) {
	case "", "file", "classpath", "resource", "configtree", "env":
		return l.String()
	}
	at := strings.IndexByte(l.value, ':')
	if i := strings.Index(l.value, "://"); i >= 0 {
		at = i + 2
	}
	head, rest := l.value[:at+1], l.value[at+1:]
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if end := strings.IndexAny(rest, "?#;"); end >= 0 {
		rest = rest[:end]
	}
	return l.optionally(head + rest)
}

// split is a group of locations of equal rank, written with semicolons.
func (l location) split() []location {
	return parseLocations(strings.Split(l.String(), ";"))
}

// defaultLocations are ConfigDataEnvironment.DEFAULT_SEARCH_LOCATIONS.
func defaultLocations() []location {
	return parseLocations([]string{
		"optional:classpath:/;optional:classpath:/config/",
		"optional:file:./;optional:file:./config/;optional:file:./config/*/",
	})
}

// reference is one file that may be at a location (StandardConfigDataReference).
type reference struct {
	loc      location
	resource string // what to load: "classpath:/config/application-prod.yml"
	dir      string // the location, when it is a directory
	profile  string
	ext      string
}

// skippable says that the file need not exist.
func (r reference) skippable() bool { return r.loc.optional || r.dir != "" || r.profile != "" }

// extensions in the order of rising precedence in one place: .properties beats
// YAML (PropertiesPropertySourceLoader, YamlPropertySourceLoader).
func extensions() [4]string { return [4]string{"yaml", "yml", "xml", "properties"} }

// references lists the files of a location, for one profile or for none.
// resource is the location resolved against the file that imports it.
func references(loc location, resource, profile string, names []string) []reference {
	suffix := ""
	if profile != "" {
		suffix = "-" + profile
	}
	if strings.HasSuffix(resource, "/") {
		out := make([]reference, 0, 4*len(names))
		for _, name := range names {
			for _, ext := range extensions() {
				out = append(out, reference{loc, resource + name + suffix + "." + ext, resource, profile, ext})
			}
		}
		return out
	}
	if name, ext, ok := extensionHint(resource); ok {
		return []reference{{loc, name + suffix, "", profile, ext}}
	}
	for _, ext := range extensions() {
		if n := len(resource) - len(ext); n > 0 && strings.EqualFold(resource[n:], ext) {
			root := resource[:n-1]
			return []reference{{loc, root + suffix + "." + ext, "", profile, ext}}
		}
	}
	return nil
}

// extensionHint takes "config[.yaml]" apart: a file without the extension it
// deserves (FileExtensionHint).
func extensionHint(file string) (name, ext string, ok bool) {
	i := strings.LastIndex(file, "[.")
	if i < 0 || !strings.HasSuffix(file, "]") {
		return file, "", false
	}
	return file[:i], strings.ToLower(file[i+2 : len(file)-1]), true
}

// scheme is a location's prefix up to the first colon, or "".
func scheme(value string) string {
	prefix, _, ok := strings.Cut(value, ":")
	if !ok || strings.ContainsAny(prefix, "/.\\") {
		return ""
	}
	return prefix
}

// against resolves a location against the file that imports it.
func against(value, parent string) string {
	value = strings.TrimPrefix(value, "resource:")
	if parent == "" || strings.HasPrefix(value, "/") || scheme(value) != "" {
		return value
	}
	return parent[:strings.LastIndex(parent, "/")+1] + value
}

// filePath is the path of a location without or with "file:".
func filePath(resource string) string {
	p := strings.TrimPrefix(resource, "file:")
	if strings.HasPrefix(p, "//") {
		p = "/" + strings.TrimLeft(p, "/")
	}
	return path.Clean(p)
}
