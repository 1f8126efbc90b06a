package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

func sampleID(n int) string { return fmt.Sprintf("%06d-20260102T030405Z-8080", n) }

// largeSample is a recording with that many bytes behind its end, which nobody reads.
func largeSample(t *testing.T, size int) []byte {
	t.Helper()
	return append(endedSample(t), append(bytes.Repeat([]byte(" "), size), '\n')...)
}

// A bucket is written to by whoever may: names that are no archiver's are left out, and what objects
// say of themselves is bounded and cannot steer a terminal.
func TestHostileNamesInABucket(t *testing.T) {
	f := newFakeS3(t)
	now := time.Now().UTC()
	id := "000001-" + now.Format("20060102T150405Z") + "-8080"
	day := now.Format(records.DayForm)
	put := func(key string) {
		f.objects[key] = sample(t)
		f.about[key] = http.Header{
			"X-Amz-Meta-Status": {"losing\t\x1b]0;owned\x07"}, "X-Amz-Meta-Cause": {strings.Repeat("x", 5000)},
			"X-Amz-Meta-Host": {"=?utf-8?q?=E2=80=AE?="}, "X-Amz-Meta-Other": {"not an archiver's"},
		}
	}
	good := "shop/" + day + "/orders/pod/" + id + records.Suffix
	put(good)
	put("shop/" + day + "/or\x1b[31mders/pod/" + id + records.Suffix)
	put("shop/" + day + "/orders/po\u202ed/" + id + records.Suffix)
	put("\x1b[2J/" + day + "/orders/pod/" + id + records.Suffix)
	put("../" + day + "/orders/pod/" + id + records.Suffix)
	put("shop/" + day + "/orders/pod/../../" + id + records.Suffix)
	code, stdout, stderr := command(t, "list", "--bucket", f.bucket())
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, 2, strings.Count(stdout, "\n"), stdout)
	require.NotContains(t, stdout, "\x1b")
	require.Less(t, len(stdout), 1500)
	code, stdout, stderr = command(t, "list", "--bucket", f.bucket(), "-o", "json")
	require.Equal(t, exitOK, code, stderr)
	var answer struct{ Recordings []found }
	require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
	require.Len(t, answer.Recordings, 1)
	require.Equal(t, good, answer.Recordings[0].Key)
	require.NotContains(t, answer.Recordings[0].About, "other")
	require.LessOrEqual(t, len(answer.Recordings[0].About["cause"]), records.LongestName)
	for _, one := range []string{"\x1b[31m", "../../../etc/passwd", "shop/" + day + "/or\x1b[31mders/pod/" + id + records.Suffix, "-rf"} {
		code, _, stderr = command(t, "report", "--bucket", f.bucket(), "--", one)
		require.NotEqual(t, exitOK, code, one)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.NotContains(t, stderr, "\x1b")
	}
}

// A hundred thousand names in one day: the latest are listed, one is read by its key, and more than
// are read end in a line that says what to do.
func TestLongBucketOfManyObjects(t *testing.T) {
	f := newFakeS3(t)
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	name := func(n int) string {
		return fmt.Sprintf("%06d-%s-8080", n, midnight.Add(time.Duration(n)*time.Millisecond).Format("20060102T150405Z"))
	}
	key := func(n int) string {
		return "shop/" + midnight.Format(records.DayForm) + "/orders/pod/" + name(n) + records.Suffix
	}
	for n := range 50_000 {
		f.names = append(f.names, key(n), key(n)+records.SumSuffix)
	}
	f.objects[key(77)] = sample(t)
	code, stdout, stderr := command(t, "list", "--bucket", f.bucket(), "--since", "48h", "--limit", "3")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, name(49_999))
	require.Contains(t, stdout, "and more: --limit, --namespace, --since")
	require.Equal(t, 5, strings.Count(stdout, "\n"))
	code, stdout, stderr = command(t, "report", key(77), "--bucket", f.bucket())
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "Incident "+name(77))
	f.names = f.names[:10]
	archive, err := openArchive(t.Context(), f.bucket())
	require.NoError(t, err)
	defer archive.close()
	archive.scanned = maxScanned - 5
	_, err = archive.find(t.Context(), name(3), "shop")
	require.EqualError(t, err, "more than 200000 names: give --cluster, and for a list --namespace or a shorter --since, for a report the key")
	f.names = nil
	for n := range maxClusters + 1 {
		f.names = append(f.names, fmt.Sprintf("c%04d/x", n))
	}
	f.objects = nil
	code, _, stderr = command(t, "list", "--bucket", f.bucket())
	require.Equal(t, exitError, code)
	require.Equal(t, "tcpdiag-archive: more than 1000 clusters: give --cluster\n", stderr)
}

// Two archivers at one folder: the store has one of each, and a collector can tell which records are the same.
func TestTwoArchiversAtOneFolder(t *testing.T) {
	dir, bucket, to := t.TempDir()+"/incidents", t.TempDir(), newReceiver(t)
	a := startAgent(t, dir)
	a.incident(8080)
	a.ids(1)
	flags := []string{"--incident-dir", dir, "--otlp-endpoint", to.URL, "--bucket", "file://" + bucket}
	spool := t.TempDir()
	first, second := start(t, append(flags, "--spool", spool)...), start(t, append(flags, "--spool", t.TempDir())...)
	eventually(t, "both have sent", func() bool { return len(to.all()) == 6 })
	eventually(t, "both have stored", func() bool {
		return strings.Contains(first.log.String(), "outcome=") && strings.Contains(second.log.String(), "outcome=")
	})
	require.Len(t, objects(t, bucket), 2)
	uids := make(map[string]int)
	for _, r := range to.all() {
		uids[r.Attributes["log.record.uid"]]++
	}
	require.Len(t, uids, 3)
	code, _, stderr := command(t, append([]string{"run", "--spool", spool}, flags...)...)
	require.Equal(t, exitError, code)
	require.Equal(t, "tcpdiag-archive: --spool: "+spool+": another archiver uses it\n", stderr)
}

// A folder that is away, or empty, for a while, and returns: nothing is sent again.
func TestFolderThatIsAwayAndReturns(t *testing.T) {
	dir, spool, to := t.TempDir()+"/incidents", t.TempDir(), newReceiver(t)
	a := startAgent(t, dir)
	a.incident(8080)
	a.ids(1)
	a.stop()
	r := start(t, "--incident-dir", dir, "--spool", spool, "--otlp-endpoint", to.URL)
	eventually(t, "it is sent", func() bool { return len(to.all()) == 3 })
	require.NoError(t, os.Rename(dir, dir+".away"))
	eventually(t, "it says so", func() bool {
		return strings.Contains(r.log.String(), "the folder of the incidents cannot be read; it is tried again")
	})
	require.NoError(t, os.Mkdir(dir, 0o750)) // of a mount that is not there yet
	eventually(t, "it is there", func() bool { return strings.Contains(r.log.String(), "the folder of the incidents is there") })
	gone := func() bool {
		text, err := os.ReadFile(filepath.Join(spool, cursorFile))
		return err == nil && strings.Contains(string(text), `"gone"`)
	}
	eventually(t, "it is remembered", gone)
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	eventually(t, "it is back", func() bool { return !gone() })
	time.Sleep(500 * time.Millisecond) // five more readings
	require.Len(t, to.all(), 3)
	require.Equal(t, 1, strings.Count(r.log.String(), "cannot be read; it is tried again")-strings.Count(r.log.String(), "is there")+1)
}

// What is remembered of a recording that was removed is forgotten after a day, whatever the clock does.
func TestWhatWasRemovedIsForgotten(t *testing.T) {
	now := time.Now()
	a := &archiver{
		cursor: &cursor{Recordings: map[string]progress{sampleID(1): {Events: 3, Done: true}}}, now: func() time.Time { return now },
		following: make(map[string]*records.Recording), said: make(map[string]bool),
	}
	require.True(t, a.forget(nil))
	require.False(t, a.forget(nil))
	now = now.Add(-48 * time.Hour)
	require.False(t, a.forget(nil), "a clock that was set back")
	now = now.Add(48*time.Hour + rememberMissing)
	require.True(t, a.forget(nil))
	require.Empty(t, a.cursor.Recordings)
}

// Somebody has one incident after the other all day: the latest that were removed are remembered.
func TestRemovedByChurn(t *testing.T) {
	now := time.Now()
	a := &archiver{
		cursor: &cursor{Recordings: make(map[string]progress)}, now: func() time.Time { return now },
		following: make(map[string]*records.Recording), said: make(map[string]bool),
	}
	for i := range mostMissing/200 + 5 {
		var ids []string
		for n := range 200 {
			ids = append(ids, sampleID(200*i+n+1))
			a.cursor.Recordings[ids[n]] = progress{Done: true}
		}
		now = now.Add(time.Second)
		a.forget(ids)
	}
	require.Len(t, a.cursor.Recordings, mostMissing+200)
	require.NotContains(t, a.cursor.Recordings, sampleID(1))
	require.Contains(t, a.cursor.Recordings, sampleID(mostMissing))
}

// A full disk: one line, the agent's folder keeps what is new, and all of it is sent once there is room.
func TestSpoolsDiskIsFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root: it mounts a small file system")
	}
	dir, small, to := t.TempDir()+"/incidents", t.TempDir(), newReceiver(t)
	require.NoError(t, syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	fill := filepath.Join(small, "fill")
	r := start(t, "--incident-dir", dir, "--spool", filepath.Join(small, "spool"), "--otlp-endpoint", to.URL)
	eventually(t, "it runs", func() bool { return strings.Contains(r.log.String(), "tcpdiag-archive runs") })
	_ = os.WriteFile(fill, make([]byte, 64<<10), 0o600) // up to what there is
	a := startAgent(t, dir)
	a.incident(8080)
	a.ids(1)
	eventually(t, "it says so", func() bool { return strings.Contains(r.log.String(), "the spool cannot be written to") })
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, 1, strings.Count(r.log.String(), "the spool cannot be written to"), "once")
	require.Contains(t, r.log.String(), "no space left on device")
	require.Empty(t, to.all())
	require.NoError(t, os.Remove(fill))
	eventually(t, "all of it is sent", func() bool { return len(to.all()) == 3 })
	requireOnce(t, to.all())
	eventually(t, "it says that, too", func() bool { return strings.Contains(r.log.String(), "the spool can be written to again") })
}

// What answers at the address may be no collector: a proxy's page, or a redirect to one, takes no record.
func TestAPageIsNoCollector(t *testing.T) {
	to, dir := newReceiver(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, sampleID(1)+records.Suffix), endedSample(t), 0o600))
	to.answer(http.StatusFound)
	r := start(t, "--incident-dir", dir, "--spool", t.TempDir(), "--otlp-endpoint", to.URL)
	eventually(t, "it is refused", func() bool { return strings.Contains(r.log.String(), "it is tried again") })
	to.answer(http.StatusOK)
	eventually(t, "a page is refused", func() bool { return strings.Contains(r.log.String(), errPage.Error()) })
	to.answer(0)
	eventually(t, "all arrive", func() bool { return len(to.all()) >= 2 })
	requireOnce(t, to.all())
}

// Without credentials, and with those that may not read, there is one line that says so.
func TestStoresThatRefuse(t *testing.T) {
	f := newFakeS3(t)
	code, _, stderr := command(t, "list", "--bucket", f.bucket())
	require.Equal(t, exitOK, code, stderr)
	f.writeOnly = true
	code, _, stderr = command(t, "list", "--bucket", f.bucket())
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "these credentials may not do that")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)

	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	code, _, stderr = command(t, "list", "--bucket", f.bucket())
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "there are no credentials for it")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	r := start(t, "--incident-dir", t.TempDir(), "--spool", t.TempDir(), "--bucket", f.bucket())
	eventually(t, "it says so when it starts", func() bool { return strings.Contains(r.log.String(), "there are no credentials for it") })
}
