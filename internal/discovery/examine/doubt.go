package examine

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// edit changes those of a connector's limits that come from certain sources.
type edit struct {
	applies func(kind model.SourceKind, source string) bool
	note    string // "": the limit is taken away
}

// given says that the command line sets a value. Of what may be hidden from us
// nothing beats it.
func given(kind model.SourceKind, _ string) bool {
	return kind == model.SourceArgument || kind == model.SourceProperty
}

func notGiven(kind model.SourceKind, source string) bool { return !given(kind, source) }

// onlyGiven takes away what does not stand on the command line.
func onlyGiven() edit { return edit{applies: notGiven} }

// doubtEnvironment notes that a higher source could not be read.
func doubtEnvironment() edit {
	return edit{notGiven, "uncertain: the environment could not be read and may say otherwise"}
}

// doubtFile notes that a file was written after the process had started.
func doubtFile(file string) edit {
	return edit{
		func(_ model.SourceKind, source string) bool { return strings.Contains(source, file) },
		"uncertain: " + file + " was written after the process had started",
	}
}

// doubtCode marks the limits that code of the application may set: nothing in
// the configuration beats it.
func doubtCode(c *model.Connector, code classpath.CodeLimits) {
	everything := func(model.SourceKind, string) bool { return true }
	fromDefaults := func(kind model.SourceKind, _ string) bool { return kind == model.SourceDefault }
	by := func(what string) string { return "uncertain: code of the application may set it (" + what + ")" }
	if code.Defaults != "" {
		edit{fromDefaults, by(code.Defaults)}.connector(c)
	}
	if code.Any != "" {
		edit{everything, by(code.Any)}.connector(c)
	}
	for _, l := range []struct {
		what    string
		setting **model.Setting[int]
	}{{code.MaxConnections, &c.MaxConnections}, {code.AcceptCount, &c.AcceptCount}, {code.MaxThreads, &c.MaxThreads}} {
		if l.what != "" {
			*l.setting = edited(edit{everything, by(l.what)}, *l.setting)
		}
	}
}

func (e edit) connector(c *model.Connector) {
	for _, s := range []**model.Setting[int]{
		&c.MaxConnections, &c.AcceptCount, &c.MaxThreads, &c.MinSpareThreads, &c.MaxQueue, &c.MaxKeepAliveRequests, &c.Gate,
	} {
		*s = edited(e, *s)
	}
	for _, s := range []**model.Setting[time.Duration]{&c.ConnectionTimeout, &c.KeepAliveTimeout} {
		*s = edited(e, *s)
	}
	c.VirtualThreads = edited(e, c.VirtualThreads)
}

func edited[T any](e edit, s *model.Setting[T]) *model.Setting[T] {
	switch {
	case s == nil || !e.applies(s.Kind, s.Source):
		return s
	case e.note == "":
		return nil
	}
	out := s.Noted(e.note)
	out.Uncertain = true
	return out
}

// limited says whether any limit is known.
func limited(c *model.Connector) bool {
	return c.MaxConnections != nil || c.AcceptCount != nil || c.MaxThreads != nil || c.MinSpareThreads != nil ||
		c.MaxQueue != nil || c.MaxKeepAliveRequests != nil || c.ConnectionTimeout != nil ||
		c.KeepAliveTimeout != nil || c.VirtualThreads != nil
}
