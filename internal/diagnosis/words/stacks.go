package words

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxPlaces is how many groups a sentence names.
const maxPlaces = 3

// StackNumbers are where the busy threads are by the JVM's own account.
func StackNumbers(l *model.Listener) string {
	s := reading.StacksOf(l)
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
