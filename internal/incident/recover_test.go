package incident

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
)

// A recording without an end is read until the deadline; one with an end is listed by its last record, whatever
// is before that.
func TestRecoverInTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	f, err := openFolder(dir, nil)
	require.NoError(t, err)
	defer f.close()
	whole := aRecording(t, 30, 100)
	lines := bytes.SplitAfter(bytes.TrimSpace(whole), []byte("\n"))
	endless := bytes.Join(lines[:len(lines)-1], nil)
	id := "000001-20260102T030405Z-80"
	write := func(text []byte) { require.NoError(t, os.WriteFile(filepath.Join(dir, nameOf(id)), text, 0o600)) }

	write(endless)
	e, err := f.recover(id, time.Now().Add(-time.Second))
	require.NoError(t, err)
	require.Equal(t, errLate.Error(), e.Text)
	require.Zero(t, e.Frames)
	e, err = f.recover(id, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.NotZero(t, e.Frames)
	require.Equal(t, recording.EndInterrupted, e.Reason)

	end, err := recording.Line{End: &recording.End{Summary: recording.Summary{Frames: 7, Port: 80}}}.Encode()
	require.NoError(t, err)
	write(append(bytes.Repeat([]byte("garbage\n"), 1000), end...))
	e, err = f.recover(id, time.Now().Add(-time.Second))
	require.NoError(t, err)
	require.Equal(t, 7, e.Frames)
}
