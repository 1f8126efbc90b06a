package render_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// A step's command is to be copied: it is in one piece.
func TestCommandOfARunIsInOnePiece(t *testing.T) {
	const command = `sudo -u "$(ps -o user= -p 4711)" tcpdiag snapshot --pid 4711 --thread-dump`
	r := &api.Run{Command: "k6", Listeners: []api.RunListener{{Port: 8080, Status: "losing", Verdict: api.Verdict{Answer: &api.Answer{Do: []api.Step{
		{Text: "See what the 4 threads wait for", Command: command},
		{Text: "Raise the number of threads", Setting: "maxThreads", From: "4", To: "20"},
	}}}}}}
	var b bytes.Buffer
	require.NoError(t, runreport.Text(&b, r, nil, render.TextOptions{Width: 80}))
	require.Contains(t, b.String(), "1 See what the 4 threads wait for:\n      "+command+"\n")
	require.Contains(t, b.String(), "2 Raise the number of threads: maxThreads 4 → 20\n")
}
