package records

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/story"
)

// A record is read when its line is whole, wherever the writer is.
func TestFollowingAFileByteByByte(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "internal", "cli", "testdata", "incident.tcpdiag"))
	require.NoError(t, err)
	end := `{"end":{"at":"2026-01-02T03:05:05Z","reason":"interrupted","summary":{}}}`
	text = fmt.Appendf(text, "\n%08x %s\n", crc32.Checksum([]byte(end), crc32.MakeTable(crc32.Castagnoli)), end)
	file := filepath.Join(t.TempDir(), "r")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	in, err := os.Open(file)
	require.NoError(t, err)
	f := Follow("000001-20260102T030405Z-8080", "c", in, time.Now())
	defer f.Close()
	var got []Event
	ended := false
	for at := 0; at < len(text); {
		n := min(len(text)-at, 997)
		out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = out.Write(text[at : at+n])
		require.NoError(t, err)
		require.NoError(t, out.Close())
		at += n
		events, end, err := f.Read(time.Now())
		require.NoError(t, err)
		got, ended = append(got, events...), end
	}
	require.True(t, ended)
	story, err := story.Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Zero(t, f.reader.Damaged)
	require.Equal(t, EventBegin, got[0].Kind)
	require.Equal(t, story.Summary.Frames, f.summary.Frames)
	require.Contains(t, f.End(story).Body, "What: ")
}
