package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
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

// Of whom most waits, the oldest recording goes first: one pod in trouble all the time
// displaces its own and no other's.
func TestSpoolIsBoundedAndShared(t *testing.T) {
	s, dropped := newSpool(t, t.TempDir(), 1000)
	require.NoError(t, s.put(kindRecording, "calm", make([]byte, 200)))
	for range 20 {
		require.NoError(t, s.put(kindRecording, "greedy", make([]byte, 200)))
	}
	require.EqualValues(t, 1000, s.bytes())
	require.Equal(t, "calm", s.items[0].owner)
	require.Equal(t, map[string]int{kindRecording: 16}, dropped)
	require.NoError(t, s.put(kindEvent, "calm", make([]byte, 100)))
	require.Equal(t, 17, dropped[kindRecording], "a log record goes before a recording")
	require.NoError(t, s.put(kindRecording, "calm", make([]byte, 1001)))
	require.Equal(t, 18, dropped[kindRecording], "what never fits is not kept")
	for range 20 {
		require.NoError(t, s.put(kindEvent, "calm", make([]byte, 100)))
	}
	require.LessOrEqual(t, s.bytes(), int64(1000))
	require.Equal(t, 11, dropped[kindEvent], "then the oldest log record")
	require.NoError(t, s.put(kindRecording, "calm", make([]byte, 500)))
	require.Equal(t, 10, s.waiting(kindEvent), "a recording takes no log record's room")
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
