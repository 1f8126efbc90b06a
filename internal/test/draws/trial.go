package draws

import (
	"fmt"
	"strconv"
	"strings"
)

// step is the first of an answer that changes a setting.
type step struct{ setting, to string }

// apply is the server with the step taken; false where the step is none that a server here can take.
func (s server) apply(do step) (server, bool) {
	n, err := strconv.Atoi(do.to)
	if err != nil || n <= 0 {
		return s, false
	}
	name := strings.ToLower(strings.NewReplacer("-", "", ".", "", "_", "").Replace(do.setting))
	switch {
	case strings.Contains(name, "hikari") && s.named:
		s.pool = n
	case strings.Contains(name, "maxconnections"):
		s.connections = n
	case strings.Contains(name, "threadsmax") && !strings.Contains(name, "queue"), strings.HasPrefix(name, "maxthreads"):
		s.threads = n
	case strings.Contains(name, "acceptcount"):
		s.backlog = n
	default:
		return s, false
	}
	return s, true
}

// load is what clients had of a time in which they came.
type load struct{ answered, failed int }

func (l load) String() string { return fmt.Sprintf("%d answered and %d failed", l.answered, l.failed) }

// worse reports whether the clients' numbers are worse than before, beyond what one run differs from the
// next: a fifth fewer are answered, or more fail by a quarter while no more are answered.
func (l load) worse(before load) bool {
	const few = 5
	fewer := l.answered+few < before.answered*4/5
	return fewer || l.failed > before.failed*5/4+few && l.answered <= before.answered
}
