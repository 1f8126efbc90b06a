package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// A list of what it may be is left out whole where there is no room for it.
func TestNotesAreCutByClauses(t *testing.T) {
	s := AnswerText{Screen: &term.Screen{Width: 40}}
	for want, text := range map[string]string{
		"  4 wait": "  4 wait: lock, pool, timer", "  16 wait": "  16 wait for a thread that is free", "  not known": "  not known; give --max-connections", "": "  10.0.3.7:5432-and-a-long-name",
	} {
		got := ""
		for _, sp := range s.whole([]term.Span{term.Text(strings.Repeat("x", 28))}, term.Text(text)) {
			got += sp.Text
		}
		require.Equal(t, want, got)
	}
}
