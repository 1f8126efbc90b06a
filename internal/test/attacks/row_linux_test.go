package attacks

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What holds under any attack. Times are beyond what the control lost: what the
// machine does not give the agent cannot be its fault.
const (
	maxGap = 100 * time.Millisecond
	maxAge = 2 * time.Second
	maxEnd = 2 * time.Second
)

// row is what an attack came to.
type row struct {
	group, resident  int64
	gap, oldest, end time.Duration
	control          time.Duration
	said             string
}

func header(t *testing.T) {
	t.Helper()
	t.Logf("%-10s %-28s %7s %7s %8s %8s %8s %7s  %s", "as", "attack", "agent", "all", "gap", "control", "oldest", "end", "what the agent said")
}

func (r *row) log(t *testing.T, who, name string) {
	t.Helper()
	t.Logf("%-10s %-28s %6dM %6dM %8s %8s %8s %7s  %.100s", who, name, r.resident>>20, r.group>>20,
		ms(r.gap), ms(r.control), ms(r.oldest), ms(r.end), r.said)
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// finish reads what is read at the end, ends the agent, and holds the row to the
// bounds that no machine can excuse.
func (s *scene) finish(t *testing.T, said string) row {
	t.Helper()
	for begin := time.Now(); !s.look(t).Time.After(begin); { // what has happened so far is in it
	}
	for _, path := range []string{"/metrics", "/"} {
		requireDiscreet(t, s.get(t, path))
	}
	r := row{said: said, oldest: s.oldest, resident: s.resident(t)}
	r.gap = time.Duration(s.metric(t, "tcpdiag_longest_sample_gap_seconds") * float64(time.Second))
	r.end = s.stop(t)
	r.control, r.group = s.control.gap(), s.group.most.Load()
	requireDiscreet(t, s.log.String())
	require.Zero(t, s.group.killed(), "processes ended by the kernel for their memory")
	assert.LessOrEqual(t, r.group, int64(maxPeak), "memory of the agent and its child processes")
	assert.LessOrEqual(t, r.resident, int64(maxPeak), "memory of the agent")
	return r
}

// inTime says whether a row holds the bounds of time.
func (r *row) inTime() error {
	switch {
	case r.gap > maxGap+r.control:
		return fmt.Errorf("no sample for %v, and the control ticked within %v", r.gap, r.control)
	case r.oldest > maxAge+r.control:
		return fmt.Errorf("a snapshot %v old was served, and the control ticked within %v", r.oldest, r.control)
	case r.end > maxEnd+10*r.control:
		return fmt.Errorf("SIGTERM took %v, and the control ticked within %v", r.end, r.control)
	}
	return nil
}

// tries is how often an attack is tried: the control ticks at other moments than
// the agent, and may be spared what the agent was not.
const tries = 3

// attempt runs an attack until it was in time, and says what it came to.
func attempt(t *testing.T, who, name string, run func(t *testing.T) row) {
	t.Helper()
	for n := 1; ; n++ {
		var r row
		ran := false
		if !t.Run(who+"/"+name, func(t *testing.T) { r, ran = run(t), true }) || !ran {
			return // it failed, was skipped, or was not asked for
		}
		r.log(t, who, name)
		err := r.inTime()
		if err == nil {
			return
		}
		t.Logf("%s/%s, try %d: %v", who, name, n, err)
		if !everything() {
			return // on a busy machine the control may be spared: only make prove PROOF=attacks, alone, holds to it
		}
		if n == tries {
			t.Errorf("%s/%s: %v", who, name, err)
			return
		}
	}
}
