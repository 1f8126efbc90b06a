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
	require.False(t, e.Ended.IsZero(), "it does not last")
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

// Who reads a folder in which no agent writes any more knows that a recording has ended; one that an agent
// has set the time of may still last, whatever it could write.
func TestReadersKnowThatAnAgentWasKilled(t *testing.T) {
	dir := t.TempDir()
	whole := aRecording(t, 31, 20)
	lines := bytes.SplitAfter(bytes.TrimSpace(whole), []byte("\n"))
	id := "000001-20260102T030405Z-80"
	path := filepath.Join(dir, nameOf(id))
	require.NoError(t, os.WriteFile(path, bytes.Join(lines[:len(lines)-1], nil), 0o600))
	l, err := OpenLibrary(dir)
	require.NoError(t, err)
	defer l.Close()
	seen := func() (listed, told recording.Summary) {
		list, err := l.List()
		require.NoError(t, err)
		require.Len(t, list, 1)
		s, err := l.Read(id)
		require.NoError(t, err)
		return list[0], s.Summary
	}

	listed, told := seen()
	require.True(t, listed.Ended.IsZero() && told.Ended.IsZero(), "it may last")
	old := time.Now().Add(-recording.Silent - time.Minute)
	require.NoError(t, os.Chtimes(path, old, old))
	listed, told = seen()
	require.Equal(t, recording.EndInterrupted, listed.Reason)
	require.Equal(t, recording.EndInterrupted, told.Reason)
	require.Equal(t, listed.LastSeen, listed.Ended)

	(&folder{root: l.folder.root}).touch(id)
	listed, told = seen()
	require.True(t, listed.Ended.IsZero() && told.Ended.IsZero(), "an agent writes it")
}

// A recording that has no room for more is one that is being written.
func TestAFullRecordingIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	d := &direct{writer: newWriter(Options{Dir: filepath.Join(dir, "recordings"), Limits: someLimits(), Log: quiet(), Now: time.Now, Version: "test"})}
	d.prepare()
	defer d.close()
	tracker, v := &tracker{history: NewHistory()}, newLife(32)
	v.seconds(4, connectionsFull, tracker, d)
	r := d.shelf.entries[0]
	path := filepath.Join(dir, "recordings", nameOf(r.ID))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	r.size = recording.MaxRecording
	tracker.record(v.next(connectionsFull), d)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), info.ModTime(), time.Minute)
}
