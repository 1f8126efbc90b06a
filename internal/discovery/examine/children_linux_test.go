package examine

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// shell are children that do what a script says.
func shell(script string) *Children {
	return &Children{Deadline: time.Minute, Command: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }}
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
	all, _ := children.abandoned.Of("")
	require.Zero(t, all)
	require.Eventually(t, func() bool { return proctest.OpenFiles(t) <= before }, time.Minute, time.Millisecond, "those of other tests may be closed meanwhile")
}

// When too many have not ended, no more are started.
func TestAbandonedChildrenAreBounded(t *testing.T) {
	children := &Children{Command: func() *exec.Cmd { panic("started") }}
	children.abandoned.Add("uid 1", ofOneOwner)
	_, _, err := children.Examine(t.Context(), Request{1, 1, "uid 1"})
	require.ErrorIs(t, err, errAbandoned)
	require.NoError(t, mayBegin(&children.abandoned, "uid 2"), "others' are begun")
	children.abandoned.Add("uid 2", ofOneOwner)
	_, _, err = children.Examine(t.Context(), Request{1, 1, "uid 3"})
	require.ErrorIs(t, err, ErrOthersHang, "and it is not said that its own files hang")
	children.abandoned.Add("uid 2", -ofOneOwner)
	require.NoError(t, mayBegin(&children.abandoned, "uid 3"))
}
