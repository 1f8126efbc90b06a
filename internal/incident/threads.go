package incident

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxPlaces bounds the places of threads that a report names.
const maxPlaces = 8

// Threads says where the thread dump shows the threads at work.
func (s *Story) Threads() []string {
	d := s.Stacks
	if d == nil {
		return nil
	}
	out := []string{phrase.Sprintf("At %s, by the JVM's own account, %d of %s handled requests:", d.At.UTC().Format(time.TimeOnly), d.Busy(), phrase.Count(d.Workers, "server thread"))}
	for i := range d.Groups {
		g := &d.Groups[i]
		if !g.Busy() || len(out) > maxPlaces {
			break
		}
		line := phrase.Number(g.Threads) + " × " + g.Where()
		if g.State != "" {
			line += " (" + strings.ToLower(strings.ReplaceAll(g.State, "_", " ")) + ")"
		}
		out = append(out, model.Printable(line))
	}
	if d.Deadlocked {
		out = append(out, "The JVM found a deadlock.")
	}
	return out
}
