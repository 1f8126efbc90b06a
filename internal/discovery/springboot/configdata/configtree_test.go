package configdata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrimNewLine(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "a\n": "a", "a\r\n": "a", "a\nb\n": "a\nb\n", "\n": "", "": ""} {
		require.Equal(t, want, trimNewLine(text))
	}
}
