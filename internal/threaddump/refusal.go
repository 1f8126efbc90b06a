package threaddump

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Refusal says why a process was not asked, or did not answer.
type Refusal struct {
	Why, How string
	// Signalled: SIGQUIT was sent.
	Signalled bool
}

func (r *Refusal) Error() string { return "threaddump: " + r.Why }

func refuse(format string, args ...any) *Refusal { return &Refusal{Why: fmt.Sprintf(format, args...)} }

// but adds what to do about it.
func (r *Refusal) but(format string, args ...any) *Refusal {
	return &Refusal{Why: r.Why, How: fmt.Sprintf(format, args...), Signalled: r.Signalled}
}

// Unavailable is the entry of a snapshot for it.
func (r *Refusal) Unavailable(pid int) model.Unavailable {
	return model.Unavailable{What: fmt.Sprintf("thread dump of pid %d", pid), Why: r.Why, How: r.How}
}
