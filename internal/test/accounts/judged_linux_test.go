package accounts

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// judgements are what the tap says of each client, by the client's port.
type judgements struct {
	mu sync.Mutex
	by map[uint16]outcome.Judged
}

func newJudgements() *judgements { return &judgements{by: make(map[uint16]outcome.Judged)} }

func (j *judgements) add(of outcome.Judged) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.by[of.Client.Port()] = of
}

func (j *judgements) all() map[uint16]outcome.Judged {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.by)
}

// delayWithin is how far the tap's delays may be from the kernel's.
func delayWithin() time.Duration {
	if nettest.InGuest() { // which is emulated
		return 100 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// checkDelays compares when each client was let in with the kernel's trace, but for as many as
// may have come out otherwise.
func (r *result) checkDelays(t testing.TB, off uint64) {
	wrong, worst, compared := uint64(0), time.Duration(0), 0
	for _, c := range r.clients {
		made, began := r.made[c.port], r.began[c.port]
		j := r.judged[c.port]
		if made == 0 || began == 0 || !j.LetIn {
			continue
		}
		compared++
		away := (j.Delay - (made - began - 3*r.shape.delay)).Abs() // a SYN, its answer, and that one's
		if worst = max(worst, away); away > delayWithin() {
			wrong++
			t.Logf("delay: %v, by the kernel %v, by the tap %v", &c.account, made-began, j.Delay)
		}
	}
	r.worst = worst
	t.Logf("delays of %d clients, the worst off by %v", compared, worst)
	if r.shape.loss > 0 {
		return // a SYN that was lost on its way is not known here
	}
	require.LessOrEqual(t, wrong, off, "delays that are not the kernel's: %v", r.shape)
}

// resetAfter is how many clients the tap calls reset that had left a moment before: what they
// had sent was never acknowledged, so that their kernel repeats that instead of a FIN, and the
// server answers it by a RST once it has given the handshake up. No packet says that nobody is
// there any more.
func (r *result) resetAfter() (n uint64) {
	for _, c := range r.clients {
		j := r.judged[c.port]
		if r.kind(c) == "stalled" && j.Outcome == outcome.Reset && c.began+j.Ended > c.over {
			n++
		}
	}
	return n
}

// listOthers logs the clients of which the tap says something else than they do.
func (r *result) listOthers(t testing.TB) {
	kinds := make(map[string]int)
	for _, c := range r.clients {
		want, got := r.kind(c), said(r.judged[c.port])
		if want == got {
			continue
		}
		if kinds[want+" for "+got]++; kinds[want+" for "+got] <= 3 {
			t.Logf("%s, by the tap %s: %v, close returned %v, socket %v", want, got, &c.account, c.gone, r.made[c.port])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %d", k, kinds[k])
	}
}

// kind is what became of a client, by its own account and the kernel's.
func (r *result) kind(c *client) string {
	made, in := r.made[c.port]
	switch in = in && made <= c.over; {
	case c.how == connectTimeout && !in:
		return "gave_up"
	case c.how == refused:
		return "refused"
	case c.how == reset:
		return "reset"
	case c.how == answered:
		return "answered"
	case !in:
		return "stalled"
	case c.check || c.how == connectTimeout:
		return "check"
	}
	return "unanswered"
}

// said is the same by the tap.
func said(j outcome.Judged) string {
	switch {
	case !j.Client.IsValid():
		return "nothing"
	case !j.LetIn || j.Outcome.Failed():
		return j.Outcome.String()
	case j.Answer == outcome.WasAnswered:
		return "answered"
	case j.Answer == outcome.WasUnanswered, j.Answer == outcome.WasClosed:
		return "unanswered"
	case j.Answer == outcome.WasCheck:
		return "check"
	}
	return fmt.Sprintf("%v, answer %d", j.Outcome, j.Answer)
}
