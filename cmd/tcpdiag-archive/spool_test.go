package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func newSpool(t *testing.T, dir string, most int64) (s *spool, dropped map[string]int) {
	t.Helper()
	s, err := openSpool(dir, most, quiet())
	require.NoError(t, err)
	t.Cleanup(s.close)
	dropped = make(map[string]int)
	s.lost = func(kind string) { dropped[kind]++ }
	return s, dropped
}

// Of whom most waits, the oldest goes first: one pod in trouble all the time displaces its own and no
// other's, whether by recordings or by log records.
func TestSpoolIsBoundedAndShared(t *testing.T) {
	s, dropped := newSpool(t, t.TempDir(), 10*block)
	put := func(kind, owner string, blocks int) {
		require.NoError(t, s.put(kind, owner, make([]byte, blocks*block)))
		require.LessOrEqual(t, s.bytes(), int64(10*block))
	}
	put(kindRecording, "calm", 2)
	for range 20 {
		put(kindRecording, "greedy", 2)
	}
	require.Equal(t, "calm", s.items[0].owner)
	require.Equal(t, map[string]int{kindRecording: 16}, dropped)
	put(kindEvent, "calm", 1)
	require.Equal(t, 17, dropped[kindRecording], "a log record goes before a recording")
	put(kindRecording, "calm", 11)
	require.Equal(t, 18, dropped[kindRecording], "what never fits is not kept")
	put(kindRecording, "third", 8)
	require.Equal(t, 19, dropped[kindRecording], "who would have most takes nobody's")
	for range 50 {
		put(kindEvent, "greedy", 1)
	}
	require.Equal(t, 1, s.waiting(kindRecording), "calm's")
	require.Equal(t, "calm", s.items[0].owner)
	require.Equal(t, kindEvent, s.items[1].kind)
	require.Equal(t, "calm", s.items[1].owner, "its log record, too")
	put(kindRecording, "third", 1)
	require.Equal(t, 8, s.waiting(kindEvent), "a recording takes no log record's room")
}

// Small files take a disk's blocks each: their number is bounded by what they take.
func TestSmallItemsCountAsBlocks(t *testing.T) {
	dir := t.TempDir()
	s, dropped := newSpool(t, dir, 16*block)
	for range 100 {
		require.NoError(t, s.put(kindEvent, "a", []byte("{}")))
	}
	require.Equal(t, 16, s.waiting(kindEvent))
	require.Equal(t, 84, dropped[kindEvent])
	s.close()
	s, _ = newSpool(t, dir, 4*block)
	require.Equal(t, 4, s.waiting(kindEvent), "with less room than before the oldest go")
	_, err := os.Stat(filepath.Join(dir, "00000000000000000001.event"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What others have put into the spool, if they can write to it, is neither read, nor sent, nor waited for;
// nothing is written to where their links lead.
func TestForeignFilesInTheSpool(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	event, err := json.Marshal(records.Event{Incident: sampleID(1)})
	require.NoError(t, err)
	target := filepath.Join(other, "target")
	require.NoError(t, os.WriteFile(target, event, 0o600))
	planted := func(n int, kind string) string { return filepath.Join(dir, item{number: uint64(n), kind: kind}.name()) }
	require.NoError(t, os.Symlink(target, planted(1, kindEvent)))
	require.NoError(t, os.Link(target, planted(2, kindEvent)))
	require.NoError(t, syscall.Mkfifo(planted(3, kindEvent), 0o600))
	require.NoError(t, os.WriteFile(planted(4, kindRecording), event, 0o600))
	require.NoError(t, os.Chmod(planted(4, kindRecording), 0o666))
	if os.Geteuid() == 0 {
		require.NoError(t, os.WriteFile(planted(5, kindEvent), event, 0o600))
		require.NoError(t, os.Chown(planted(5, kindEvent), 12345, 12345))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, cursorFile), 0o600))
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.WriteFile(inside, []byte("as it was"), 0o600))
	for n := 1; n < 20; n++ {
		require.NoError(t, os.Symlink("inside", planted(n, kindRecording)+".tmp"))
		require.NoError(t, os.Symlink("inside", planted(n, kindEvent)+".tmp"))
	}
	require.NoError(t, os.Symlink(filepath.Join(other, "new"), filepath.Join(dir, beatFile)))
	s, _ := newSpool(t, dir, 1<<20)
	c, err := loadCursor(s)
	require.NoError(t, err)
	require.Empty(t, c.Recordings)
	require.Zero(t, s.waiting(kindEvent)+s.waiting(kindRecording))
	require.NoError(t, s.put(kindEvent, "a", event))
	require.NoError(t, c.save(s))
	new(heart{root: s.root}).beat()
	text, err := os.ReadFile(inside)
	require.NoError(t, err)
	require.Equal(t, "as it was", string(text))
	require.NoFileExists(t, filepath.Join(other, "new"))
}

// What others may have written is not sent: that is said, and counted.
func TestForeignFilesAreSaid(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	open := func() (*spool, *int) {
		s, err := openSpool(dir, 1<<20, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		lost := new(int)
		s.lost = func(string) { *lost++ }
		return s, lost
	}
	s, _ := open()
	require.NoError(t, s.put(kindEvent, "a", []byte("{}")))
	require.NoError(t, s.put(kindEvent, "a", []byte("{}")))
	s.release()
	for _, i := range s.items {
		require.NoError(t, os.Chmod(filepath.Join(dir, i.name()), 0o660)) //nolint:gosec // as fsGroup of Kubernetes does, for the archiver's own group
	}
	s.close()
	s, _ = open()
	require.Equal(t, 2, s.waiting(kindEvent))
	for _, i := range s.items {
		require.NoError(t, os.Chmod(filepath.Join(dir, i.name()), 0o666)) //nolint:gosec // anybody
	}
	s.close()
	s, _ = open()
	require.Zero(t, s.waiting(kindEvent))
	require.Contains(t, log.String(), "files=2")
	s.close()
	for _, name := range []string{"00000000000000000001.event", "00000000000000000002.event"} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o600))
	}
	s, lost := open()
	defer s.close()
	i, ok := s.first(kindEvent, 0)
	require.True(t, ok)
	require.NoError(t, os.Chmod(filepath.Join(dir, i.name()), 0o666)) //nolint:gosec // while it waits
	ctx, cancel := context.WithCancel(t.Context())
	(&archiver{spool: s, log: quiet(), metrics: newMetrics(s), now: time.Now}).deliver(ctx, kindEvent, "collector", func(_ context.Context, sent item, _ []byte) error {
		cancel()
		require.NotEqual(t, i.number, sent.number)
		return nil
	})
	require.Equal(t, 1, *lost)
	require.Contains(t, log.String(), errForeign.Error())
}

// A key in the spool that no archiver makes is not written to a store.
func TestKeysOfTheSpoolAreChecked(t *testing.T) {
	for _, key := range []string{"", "../../etc/passwd", "a/b/c/d/" + sampleID(1) + ".txt", "a/b/\x1b/d/" + sampleID(1) + records.Suffix} {
		text, err := (&records.Manifest{Key: key}).Spooled([]byte("x"))
		require.NoError(t, err)
		a := &archiver{log: quiet()}
		require.ErrorIs(t, a.storeRecording(t.Context(), item{}, text), errForGood, key)
	}
}

func TestSpoolOfAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	s, _ := newSpool(t, dir, 1<<20)
	_, err := openSpool(dir, 1<<20, quiet())
	require.ErrorContains(t, err, "another archiver uses it")
	e, err := json.Marshal(records.Event{Incident: "000001-20260102T030405Z-8080", Number: 4, Origin: records.Origin{Host: "n"}})
	require.NoError(t, err)
	require.NoError(t, s.put(kindEvent, "n///", e))
	_, ok := s.first(kindEvent, 0)
	require.False(t, ok, "nothing is sent before the cursor is written")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000000000000009.event.tmp"), []byte("torn"), 0o600))
	s.close()
	s, _ = newSpool(t, dir, 1<<20)
	i, ok := s.first(kindEvent, 0)
	require.True(t, ok)
	require.Equal(t, "n///", i.owner)
	c, err := loadCursor(s)
	require.NoError(t, err)
	require.Equal(t, 5, c.Recordings["000001-20260102T030405Z-8080"].Events, "what the spool has is not made again")
	require.NoFileExists(t, filepath.Join(dir, "00000000000000000009.event.tmp"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, cursorFile), []byte("{"), 0o600))
	_, err = loadCursor(s)
	require.NoError(t, err)
}

// A recording whose agent was killed ends for the archiver when it is not written any more.
func TestStaleRecordingIsStored(t *testing.T) {
	dir := t.TempDir()
	text := sample(t)
	path := filepath.Join(dir, "000001-20260102T030405Z-8080.tcpdiag")
	require.NoError(t, os.WriteFile(path, text[:len(text)*2/3], 0o600))
	now := time.Now()
	s, _ := newSpool(t, t.TempDir(), 64<<20)
	a := &archiver{
		dir: dir, cluster: "c", stale: recording.Silent, log: quiet(), now: func() time.Time { return now }, beat: func() {},
		following: make(map[string]*records.Recording), said: make(map[string]bool), spool: s, store: new(store), metrics: newMetrics(s),
	}
	var err error
	a.cursor, err = loadCursor(s)
	require.NoError(t, err)
	a.poll()
	require.Zero(t, s.waiting(kindRecording))
	now = now.Add(recording.Silent + time.Second)
	require.NoError(t, os.Chtimes(path, now, now)) // its agent finds no room in it, and says that it lives
	a.poll()
	require.Zero(t, s.waiting(kindRecording))
	now = now.Add(recording.Silent + time.Second)
	a.poll()
	require.Equal(t, 1, s.waiting(kindRecording))
	a.poll()
	require.Equal(t, 1, s.waiting(kindRecording))
}

func TestBackoffIsBounded(t *testing.T) {
	b := backoff{least: time.Millisecond, most: 8 * time.Millisecond}
	for range 10 {
		require.True(t, b.wait(t.Context()))
	}
	require.Equal(t, b.most, b.next)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.next = time.Hour
	b.most = time.Hour
	require.False(t, b.wait(ctx))
}

func TestKeysAreSafe(t *testing.T) {
	h := &recording.Header{ID: "000001-20260102T030405Z-8080", Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Host: "../../etc"}
	p := records.OriginOf("c", h, &model.Listener{})
	require.Equal(t, "c/2026-01-02/_host/.._.._etc/"+h.ID+records.Suffix, records.KeyOf(&p, h))
	p = records.Origin{Cluster: "c", Namespace: "..", Pod: "a/b\x00\n"}
	require.Equal(t, "c/2026-01-02/_/a_b__/"+h.ID+records.Suffix, records.KeyOf(&p, h))
	f, ok := parseKey(records.KeyOf(&p, h))
	require.True(t, ok)
	require.Equal(t, h.Began, f.Began)
}
