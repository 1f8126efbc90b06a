package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// No string of the document has a control in it, neither as it is written nor
// once it is decoded, and every other one is as it was.
func TestJSONPrintable(t *testing.T) {
	notes := []string{"a\x1b[2J", "del\x7f", "c1\u009b31m", "bidi\u202e", "line\nend", "tab\t", `back\slash "quoted"`, "größe → <b>", "nul\x00"}
	var out bytes.Buffer
	require.NoError(t, JSON(&out, &model.Snapshot{Notes: notes}))
	require.False(t, strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), func(r rune) bool { return !unicode.IsPrint(r) }))
	var got struct{ Notes []string }
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, []string{
		`a\u001b[2J`, `del\u007f`, `c1\u009b31m`, `bidi\u202e`, `line\nend`, `tab\t`, `back\slash "quoted"`, "größe → <b>", `nul\u0000`,
	}, got.Notes)
}
