package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

func TestRunbook(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, render.Runbook(&b, &causes.Runbook{
		Code: "max_threads", Title: "all threads are busy", Seen: "Requests [wait](a.md) in `Tomcat`.", Vain: "acceptCount.",
	}, render.TextOptions{}))
	require.Equal(t, "max_threads: all threads are busy\n\n Seen: Requests wait in Tomcat.\n\n Does not help: acceptCount.\n", b.String())
}

// Every runbook fits on a screen with the next prompt, and the list names each.
func TestRunbooks(t *testing.T) {
	all := diagnosis.Runbooks()
	var list bytes.Buffer
	require.NoError(t, render.Runbooks(&list, all, render.TextOptions{}))
	for i := range all {
		var b bytes.Buffer
		require.NoError(t, render.Runbook(&b, &all[i], render.TextOptions{}))
		require.Contains(t, "\n"+list.String(), "\n "+all[i].Code+" ", all[i].Code)
		require.NotContains(t, b.String(), "`", all[i].Code)
		require.LessOrEqual(t, strings.Count(b.String(), "\n"), 23, all[i].Code)
		for line := range strings.Lines(b.String()) {
			require.LessOrEqual(t, len([]rune(line)), 81, line)
		}
	}
}
