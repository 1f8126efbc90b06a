package render_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

// checkGolden compares with testdata/NAME.
func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden.Equal(t, filepath.Join("testdata", name), string(got))
}

func TestTextGolden(t *testing.T) {
	for name, s := range scenarios() {
		for suffix, o := range map[string]render.TextOptions{
			"80": {Width: 80}, "100": {Width: 100, Height: 50}, "50": {Width: 50},
			"v80": {Width: 80, Verbose: true}, "v120": {Width: 120, Verbose: true},
		} {
			t.Run(name+"_"+suffix, func(t *testing.T) {
				var b bytes.Buffer
				require.NoError(t, render.Text(&b, s, o))
				checkGolden(t, name+"_"+suffix+".txt", b.Bytes())
			})
		}
	}
}

func TestTextGoldenInColour(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, render.Text(&b, overload(), render.TextOptions{Width: 80, Color: true}))
	checkGolden(t, "a5_overload_colour.txt", b.Bytes())
	b.Reset()
	require.NoError(t, render.Text(&b, overload(), render.TextOptions{Width: 80, Color: true, Verbose: true}))
	checkGolden(t, "a5_overload_vcolour.txt", b.Bytes())
}

func TestJSONGolden(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, render.JSON(&b, s))
			checkGolden(t, name+".json", b.Bytes())
		})
	}
}
