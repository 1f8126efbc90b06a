package render_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

// Who gets a snapshot as a document shows the same screen as who took it, and would hand
// on the same document.
func TestTheDocumentIsShownAsTheSnapshot(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			sent, err := json.Marshal(api.NewSnapshot(s))
			require.NoError(t, err)
			var document api.Snapshot
			require.NoError(t, json.Unmarshal(sent, &document))
			got := document.Model()
			for _, o := range []render.TextOptions{{Width: 80}, {Width: 100, Height: 50}, {Width: 120, Verbose: true}} {
				var want, text bytes.Buffer
				require.NoError(t, render.Text(&want, s, o))
				require.NoError(t, render.Text(&text, got, o))
				require.Equal(t, want.String(), text.String())
			}
			again := api.NewSnapshot(got)
			for i := range again.Listeners { // read from the limit max_threads
				if k := again.Listeners[i].Connector; k != nil {
					k.BusyThreads = document.Listeners[i].Connector.BusyThreads
				}
			}
			sentAgain, err := json.Marshal(again)
			require.NoError(t, err)
			require.JSONEq(t, string(sent), string(sentAgain))
		})
	}
}
