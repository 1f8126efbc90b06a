package catalina

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// setting is an attribute's value and where it comes from.
type setting struct {
	given bool // the attribute is there
	ok    bool // and its value is used
	// hidden is set when ${…} in it may stand for something that cannot be
	// seen from outside.
	hidden bool
	doubt  string // the note of a value that is uncertain
	text   string
	raw    string // as it is written, for people: what ${…} stands for is not repeated
	value  int
	line   int
	via    []Property
}

// text is an attribute after substitution.
func (r *reader) text(e *element, name string) setting {
	a, ok := e.attrs[name]
	if !ok {
		return setting{}
	}
	s := setting{given: true, line: a.line, raw: a.text}
	s.text, s.via = r.from.replace(a.text)
	if strings.Contains(a.text, "${") {
		s.hidden, s.doubt = r.from.judge(s.text, s.via)
		s.hidden = s.hidden || r.from.blind || r.from.replaced > maxReplacedSum
		if r.from.replaced > maxReplacedSum {
			r.once("values with ${…} in "+r.server.File, "they grow beyond what is read")
		}
	}
	s.ok = !s.hidden
	return s
}

// int is an attribute that is a number. IntrospectionUtils.setProperty takes
// what Integer.valueOf takes and ignores everything else.
func (r *reader) int(e *element, names ...string) setting {
	var s setting
	for _, name := range names {
		if s = r.text(e, name); s.given {
			break
		}
	}
	n, err := strconv.ParseInt(s.text, 10, 32)
	s.value, s.ok = int(n), s.ok && err == nil
	return s
}

// bool is an attribute that is true or false (Boolean.valueOf).
func (r *reader) bool(e *element, name string) setting {
	s := r.text(e, name)
	if strings.EqualFold(s.text, "true") {
		s.value = 1
	}
	return s
}

// source is where the value comes from, for people, and its kind. A value that
// a property gives counts as that property's.
func (s setting) source(file string) (model.SourceKind, string) {
	source := file + " line " + strconv.Itoa(s.line)
	for _, property := range s.via {
		if property.Source != "" {
			return property.Kind, property.Source + " via " + source
		}
	}
	return model.SourceFile, source
}

// defaultSource says which version's default it is.
func defaultSource(v Version) string {
	return "default of Tomcat " + cmp.Or(v.String(), "(version unknown)")
}

// pick makes the setting that is in force of an attribute and its default, or
// nil when that cannot be known. refused says why the server ignores a number
// that it could parse.
func pick[T any](r *reader, s setting, name string, byDefault T, convert func(int) T, refused func(int) string) *model.Setting[T] {
	out := &model.Setting[T]{Value: byDefault, Kind: model.SourceDefault, Source: defaultSource(r.server.Version)}
	switch {
	case s.hidden:
		return nil
	case !s.given:
		return out
	}
	kind, source := s.source(r.server.File)
	why := ""
	switch {
	case !s.ok:
		why = "it is not a whole number"
	case refused != nil:
		why = refused(s.value)
	}
	if why != "" {
		out.Note = fmt.Sprintf("%s (%s) is ignored: %s", name, source, why)
	} else {
		out = &model.Setting[T]{Value: convert(s.value), Kind: kind, Source: source}
	}
	out.Uncertain = s.doubt != ""
	out.Note = join(out.Note, s.doubt)
	return out
}

// join puts two notes together.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func plain(n int) int { return n }

// unread is what could not be read of the system properties, the zero value
// nothing.
type unread struct {
	what string
	// first: it beats whatever is known, as catalina.properties does. Else what
	// is known beats it: of the JVM's options in the environment, only
	// _JAVA_OPTIONS would beat -D, and nobody sets limits there.
	first bool
}

// judge says what a replaced text is worth: hidden when a ${…} in it was left
// that may stand for something, with a doubt when another source may say
// otherwise.
func (u unread) judge(replaced string, via []Property) (hidden bool, doubt string) {
	isDefault := func(p Property) bool { return p.Source == "" }
	switch {
	case u.what == "":
		return false, ""
	case strings.Contains(replaced, "${"):
		return true, ""
	case u.first || slices.ContainsFunc(via, isDefault):
		return false, "uncertain: " + u.what + " could not be read and may say otherwise"
	}
	return false, ""
}
