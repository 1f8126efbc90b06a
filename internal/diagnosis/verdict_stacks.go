package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// stacksOf is the thread dump that a process has given, nil where there is none.
func stacksOf(l *model.Listener) *model.Stacks {
	if l == nil || l.Process == nil {
		return nil
	}
	return l.Process.Stacks
}

// maxPlaces is how many groups a sentence names.
const maxPlaces = 3

// stackNumbers are where the busy threads are by the JVM's own account.
func stackNumbers(l *model.Listener) string {
	s := stacksOf(l)
	if s.BusyGroup() == nil {
		return ""
	}
	var parts []string
	for i := range s.Groups {
		g := &s.Groups[i]
		if !g.Busy() || len(parts) == maxPlaces {
			break
		}
		part := phrase.Sprintf("%d in %s", g.Threads, model.ShortMethod(g.Library))
		if g.Application != "" && g.Application != g.Library {
			part += " called by " + model.ShortMethod(g.Application)
		}
		parts = append(parts, part)
	}
	return phrase.Sprintf("a thread dump shows of %s at work ", phrase.Count(s.Busy(), "thread")) + strings.Join(parts, ", ")
}

// standStill reports whether the threads of a group do not run.
func standStill(g *model.StackGroup) bool {
	return g.State == "BLOCKED" || strings.HasSuffix(g.State, "WAITING")
}
