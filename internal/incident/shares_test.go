package incident

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// of makes a listener another user's, in trouble.
func of(uid uint32, port uint16, dropped uint64) model.Listener {
	l := look(start, port, dropped, 101).Listeners[0]
	l.User = &uid
	l.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections, Summary: "It loses."}
	return l
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// However many listeners of one user are in trouble, and were first, another's incident is
// recorded, with all that it lost.
func TestIncidentsAreShared(t *testing.T) {
	ledger := shares.NewLedger(silent(), time.Now)
	r := NewRecorder(Options{Log: silent(), Now: time.Now, Shares: ledger, Limits: someLimits()})
	done := make(chan struct{})
	go func() { r.writer.run(r.jobs); close(done) }()
	for second := range 20 {
		snap := &model.Snapshot{Time: at(float64(second))}
		for port := range uint16(50) {
			snap.Listeners = append(snap.Listeners, of(666, 1000+port, 0))
		}
		if second >= 5 {
			snap.Listeners = append(snap.Listeners, of(1000, 9000, 18*uint64(second-4)))
		}
		r.Observe(snap)
		require.LessOrEqual(t, len(r.tracker.cases), maxOpen)
		require.Eventually(t, func() bool { return len(r.jobs) == 0 }, time.Minute, time.Millisecond)
	}
	r.tracker.stop(at(20), r)
	close(r.jobs)
	<-done
	var honest []recording.Summary
	for _, s := range r.List() {
		if s.Port == 9000 {
			honest = append(honest, s)
		}
	}
	require.Len(t, honest, 1)
	require.EqualValues(t, 14*18, honest[0].Dropped, "since the second in which it began")
	require.Equal(t, "uid 1000", honest[0].Owner)
	for _, count := range ledger.Counts() {
		if count.Resource == "incidents" {
			require.EqualValues(t, 1, count.Evicted)
			require.NotZero(t, count.Refused)
		}
	}
}

// Hundreds of listeners that come and go leave the history of those that stay as it is, and have
// their own from their first second.
func TestRingsByChurn(t *testing.T) {
	h := NewHistory()
	stays := KeyOf(&look(start, 8080, 0, 0).Listeners[0])
	for second := range 400 {
		s := look(at(float64(second)), 8080, uint64(second), 3)
		for n := range 100 {
			port := uint16(10_000 + (second*100+n)%40_000)
			s.Listeners = append(s.Listeners, look(at(float64(second)), port, 0, 7).Listeners[0])
		}
		h.Observe(s)
		for i := range s.Listeners {
			require.NotEmpty(t, h.Points(KeyOf(&s.Listeners[i])))
		}
		require.LessOrEqual(t, len(h.rings), 101+maxClosed)
	}
	require.Len(t, h.Points(stays), 400)
}

// 300 calm listeners have a ring each.
func TestRingsOfMany(t *testing.T) {
	h := NewHistory()
	s := &model.Snapshot{Time: start}
	for port := range uint16(300) {
		s.Listeners = append(s.Listeners, look(start, 1000+port, 0, 0).Listeners[0])
	}
	h.Observe(s)
	require.Len(t, h.rings, 300)
}

// A closed listener's ring goes with those of whoever has most of them.
func TestClosedRingsAreShared(t *testing.T) {
	h := NewHistory()
	honest := of(1000, 80, 0)
	h.Observe(&model.Snapshot{Time: at(0), Listeners: []model.Listener{honest}})
	for i := range 200 {
		h.Observe(&model.Snapshot{Time: at(1 + float64(i)), Listeners: []model.Listener{of(666, uint16(1000+i), 0)}})
	}
	require.NotEmpty(t, h.Points(KeyOf(&honest)))
}

// One user's recordings do not displace another's, be it by their number or their size.
func TestRecordingsAreShared(t *testing.T) {
	now := start.Add(time.Hour)
	for name, l := range map[string]Limits{
		"by number": {Files: 10, Bytes: 1 << 40, Age: 2 * time.Hour},
		"by size":   {Files: 1000, Bytes: 10 << 10, Age: 2 * time.Hour},
	} {
		var s shelf
		honest := s.add(&recording.Header{Port: 80, Began: start, Owner: "uid 1000"})
		honest.going, honest.size, honest.LastSeen = false, 1<<10, now
		for i := range 100 {
			e := s.add(&recording.Header{Port: 81, Began: start.Add(time.Duration(i) * time.Second), Owner: "uid 666"})
			e.going, e.size, e.LastSeen = false, 1<<10, now
			out := s.surplus(l, now)
			require.NotContains(t, out, honest, name)
			for _, e := range out {
				s.remove(e)
			}
		}
		require.Len(t, s.entries, 10, name)
		require.Len(t, s.surplus(l, now.Add(3*time.Hour)), 10, "age is everybody's")
	}
}

func TestOwners(t *testing.T) {
	uid := uint32(33)
	l := model.Listener{ID: model.ListenerID{NetNS: 7, Address: netip.MustParseAddrPort("10.0.0.1:80")}}
	require.Equal(t, "netns 7", shares.OwnerOf(&l))
	l.User = &uid
	require.Equal(t, "uid 33", shares.OwnerOf(&l))
	l.Process = &model.Process{Container: "c0ffee", PodUID: "1-2"}
	require.Equal(t, "uid 33", shares.OwnerOf(&l), "they may be what the process mounts")
	l.Process.Owner = "pod 1-2"
	require.Equal(t, "pod 1-2", shares.OwnerOf(&l))
}

// Whatever number a stranger's file has, the next recordings are listed.
func TestNumbersOfStrangers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	require.NoError(t, os.Mkdir(dir, 0o750))
	for _, number := range []string{"999999999", "9999999999999", "999999999999"} {
		name := nameOf(number + "-20260102T030405Z-80")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	w := newWriter(Options{Dir: dir, Limits: someLimits(), Log: silent(), Now: time.Now, Shares: shares.NewLedger(silent(), time.Now)})
	w.prepare()
	c := new(open)
	w.begin(c, &recording.Header{Schema: recording.Schema, Began: start, Port: 80})
	id := w.going[c].ID
	w.close()
	f, err := openFolder(dir, nil)
	require.NoError(t, err)
	defer f.close()
	ids, err := f.ids()
	require.NoError(t, err)
	require.Contains(t, ids, id)
}

func TestFoldersOfOthers(t *testing.T) {
	for mode, ok := range map[os.FileMode]bool{0o750: true, 0o700: true, 0o755: true, 0o770: false, 0o775: false, 0o777: false} {
		dir := filepath.Join(t.TempDir(), fmt.Sprintf("%o", mode))
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.Chmod(dir, mode))
		f, err := openFolder(dir, nil)
		require.Equal(t, ok, err == nil, "%o: %v", mode, err)
		if ok {
			f.close()
		}
	}
	own, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Chmod(own, 0o750))
	require.NoError(t, os.Symlink(own, link))
	f, err := openFolder(link, nil)
	require.NoError(t, err, "a link of one's own")
	f.close()
	if os.Lchown(link, 65534, 65534) == nil {
		_, err = openFolder(link, nil)
		require.ErrorContains(t, err, "symbolic link")
	}
}
