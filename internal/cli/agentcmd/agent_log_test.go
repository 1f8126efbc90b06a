package agentcmd

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names that others chose reach the log without control characters.
func TestLogPrintable(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		o := agentOptions{logLevel: "info", logFormat: format}
		o.logger(&out).Info("seen\u009b31m", "comm", "ja\x1b[2Jva\u202e", "err", errors.New("bad \x7f name\xff"))
		require.NotRegexp(t, "[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202e\uFFFD]", out.String(), format)
		require.Contains(t, out.String(), "x1b[2J")
	}
}
