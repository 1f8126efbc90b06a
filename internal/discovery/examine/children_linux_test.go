package examine

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// shell are children that do what a script says.
func shell(script string) *Children {
	return StartedBy(time.Minute, func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) })
}

// Whatever a child does, it is over within its deadline, and what it said is
// believed only if it has the agreed form.
func TestChildrenThatFail(t *testing.T) {
	valid := `{"Known":true,"Server":"jvm","Version":{},"Management":"","Connectors":null,"Missing":null,"Unavailable":null,"Files":null,"Numbers":[8080],"Failure":""}`
	_, _, err := shell("cat >/dev/null; echo '"+valid+"'").Examine(t.Context(), Request{PID: 1, StartTime: 1})
	require.NoError(t, err)
	for script, want := range map[string]string{
		"exit 3":                         "exit status 3",
		"kill -9 $$":                     "signal: killed",
		"true":                           "it is empty",
		"echo hello":                     "not of the form",
		"echo '" + valid + "{}'":         "something follows",
		"head -c 1000000 /dev/zero":      "more than",
		"cat /dev/zero":                  "more than",
		`echo '{"Server":"ssh"}'`:        "no such kind",
		`echo '{"Pot":1}'`:               "not of the form",
		`echo '{"Failure":"gone away"}'`: "gone away",
		"echo fatal error: runtime: out of memory >&2; exit 2": "MiB of memory",
	} {
		_, _, err := shell(script).Examine(t.Context(), Request{PID: 1, StartTime: 1})
		require.ErrorContains(t, err, want, script)
		require.NotContains(t, err.Error(), "ssh", "what it said is not repeated")
	}
}

// A child that says nothing is killed at the deadline, with nothing left of it.
func TestChildThatIsSilent(t *testing.T) {
	before := proctest.OpenFiles(t)
	children := shell("echo $$ >&2; exec sleep 600")
	children.Deadline = 100 * time.Millisecond
	_, _, err := children.Examine(t.Context(), Request{PID: 1, StartTime: 1})
	require.ErrorIs(t, err, errDeadline)
	require.Zero(t, children.slots.Taken())
	require.Eventually(t, func() bool { return proctest.OpenFiles(t) <= before }, time.Minute, time.Millisecond, "those of other tests may be closed meanwhile")
}

// Two owners whose files hang stop nobody else's examinations, and the children that hang are bounded all the same.
func TestAbandonedChildrenAreBounded(t *testing.T) {
	children := shell("cat >/dev/null; exit 3")
	hang := func(owner string) {
		require.NoError(t, children.slots.Begin(owner))
		children.slots.Hung(owner)
	}
	begins := func(owner string) error {
		_, _, err := children.Examine(t.Context(), Request{1, 1, owner})
		return err
	}
	for range ofOneOwner {
		hang("uid 1")
		hang("uid 2")
	}
	require.ErrorIs(t, begins("uid 1"), errAbandoned)
	for range 3 {
		require.ErrorContains(t, begins("uid 3"), "exit status 3", "others' are begun")
	}
	hang("uid 4")
	hang("uid 5")
	require.ErrorIs(t, begins("uid 3"), hangs.ErrOthers, "and it is not said that its own files hang")
	children.slots.End("uid 2")
	require.ErrorContains(t, begins("uid 3"), "exit status 3")
	children.command = func() *exec.Cmd { return exec.Command("/nonexistent") }
	require.Error(t, begins("uid 3"))
	require.Equal(t, maxChildren-1, children.slots.Taken(), "who does not start has no slot")
}

// Who starts one process after the other has a tenth of a core for their examinations; nobody else waits for it.
func TestExaminationsArePaced(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPace(func() time.Time { return now })
	begun := 0
	for range 10 * 60 * 50 { // ten minutes, fifty processes a second
		if p.begins("churn") {
			begun++
			p.spent("churn", 20*time.Millisecond)
		}
		require.True(t, p.begins("honest"))
		now = now.Add(20 * time.Millisecond)
	}
	require.InDelta(t, (600*pacePart+paceSaved.Seconds())/0.02, begun, 2)
	now = now.Add(time.Duration(float64(paceSaved) / pacePart))
	for n := range 10_000 { // owners by churn
		p.spent(fmt.Sprint(n), 20*time.Millisecond)
		require.LessOrEqual(t, len(p.paid), maxPaced)
	}
	p.spent("churn", paceSaved)
	for n := range 10_000 {
		p.spent(fmt.Sprint(n), 20*time.Millisecond)
	}
	require.False(t, p.begins("churn"), "who has spent most is not forgotten")

	children := shell("cat >/dev/null; exit 3")
	children.pace = newPace(func() time.Time { return now })
	children.pace.saved = 3 * startCost
	examine := func(owner string) error {
		_, _, err := children.Examine(t.Context(), Request{1, 1, owner})
		return err
	}
	failed := 0
	for range 10 {
		if !errors.Is(examine("churn"), ErrPaced) {
			failed++
		}
	}
	require.Positive(t, failed)
	require.LessOrEqual(t, failed, 3)
	require.ErrorContains(t, examine("honest"), "exit status 3")
	require.Zero(t, children.slots.Taken())
}
