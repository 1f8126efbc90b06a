package examine

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func knownKind(k model.SourceKind) bool {
	switch k {
	case model.SourceDefault, model.SourceFile, model.SourceEnv, model.SourceArgument, model.SourceProperty:
		return true
	}
	return false
}

func cleanList(list []model.Unavailable) []model.Unavailable {
	out := make([]model.Unavailable, 0, len(list))
	for _, u := range list {
		out = append(out, model.Unavailable{What: clean(u.What), Why: clean(u.Why), How: clean(u.How)})
	}
	return out
}

// clean is a text that a person can be shown: valid UTF-8 of at most maxText
// bytes, without control characters and those that turn the direction of writing.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
	if len(text) <= maxText {
		return text
	}
	cut := maxText - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

const (
	// MaxUnavailable bounds what is said of one process.
	MaxUnavailable = 32
	// MaxSentence bounds one sentence of it.
	MaxSentence = 2 * model.MaxName
)

// Bounded makes what could not be seen of a process safe to show: the names in
// it are the process's choice. What is beyond the bound is counted.
func Bounded(pid int, list []model.Unavailable) []model.Unavailable {
	rest := len(list) - MaxUnavailable
	out := make([]model.Unavailable, 0, min(len(list), MaxUnavailable+1))
	for _, u := range list[:min(len(list), MaxUnavailable)] {
		out = append(out, model.Unavailable{What: Sentence(u.What), Why: Sentence(u.Why), How: Sentence(u.How)})
	}
	if rest > 0 {
		out = append(out, model.Unavailable{What: fmt.Sprintf("%d more of pid %d", rest, pid), Why: "too many to name"})
	}
	return out
}

// Sentence is a text of another process, bounded and printable.
func Sentence(s string) string {
	if len(s) > MaxSentence {
		s = s[:MaxSentence] + "…"
	}
	return model.Printable(s)
}

// Bounds of the servers that a configuration names.
const (
	maxBackends = 4
	maxAt       = 32
	maxPorts    = 8
	maxPoolSize = 100_000
)

// wireBackend is a model.Backend.
type wireBackend struct {
	Name  string
	At    []netip.AddrPort `json:",omitempty"`
	Ports []uint16         `json:",omitempty"`
	Pool  *model.Pool      `json:",omitempty"`
}

// newWireBackends leaves out what is beyond the bounds.
func newWireBackends(list []model.Backend) []wireBackend {
	var out []wireBackend
	for _, b := range list[:min(len(list), maxBackends)] {
		w := wireBackend{b.Name, b.At[:min(len(b.At), maxAt)], b.Ports[:min(len(b.Ports), maxPorts)], nil}
		if b.Pool != nil {
			w.Pool = new(*b.Pool)
			w.Pool.Size.Source, w.Pool.Size.Note = clean(w.Pool.Size.Source), clean(w.Pool.Size.Note)
		}
		out = append(out, w)
	}
	return out
}

func (w *wireBackend) backend() model.Backend {
	return model.Backend{Name: w.Name, At: w.At, Ports: w.Ports, Pool: w.Pool}
}

// checkBackends holds them to what package springboot makes.
func checkBackends(list []wireBackend) error {
	if len(list) > maxBackends {
		return fmt.Errorf("%w: too many servers", errAnswer)
	}
	for i := range list {
		if !list[i].valid() {
			return fmt.Errorf("%w: a server that the configuration names", errAnswer)
		}
	}
	return nil
}

func (w *wireBackend) valid() bool {
	switch {
	case !springboot.Plain(w.Name), len(w.At) > maxAt, len(w.Ports) > maxPorts, slices.Contains(w.Ports, 0):
		return false
	case slices.ContainsFunc(w.At, func(a netip.AddrPort) bool { return !a.IsValid() || a.Port() == 0 || a.Addr().Zone() != "" }):
		return false
	case w.Pool == nil:
		return true
	}
	size := &w.Pool.Size
	return size.Value >= 1 && size.Value <= maxPoolSize && knownKind(size.Kind) &&
		springboot.Plain(w.Pool.Library) && springboot.Plain(w.Pool.Setting) &&
		size.Source == clean(size.Source) && size.Note == clean(size.Note)
}
