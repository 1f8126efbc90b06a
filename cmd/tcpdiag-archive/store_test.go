package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

// Who may only write stores, and stores once: that there is one of a key is the answer of the write.
func TestTheRightToWriteIsEnough(t *testing.T) {
	f, dir := newFakeS3(t), t.TempDir()+"/incidents"
	f.writeOnly = true
	a := startAgent(t, dir)
	a.incident(8080)
	id := a.ids(1)[0]
	flags := []string{"--incident-dir", dir, "--bucket", f.bucket(), "--cluster", "shop"}
	first := start(t, append(flags, "--spool", t.TempDir())...)
	eventually(t, "it is stored", func() bool { return strings.Contains(first.log.String(), "outcome=stored") })
	require.Equal(t, exitOK, first.stop())
	keys := f.keys()
	require.Len(t, keys, 2)
	require.True(t, strings.HasSuffix(keys[0], id+records.Suffix))
	written := f.objects[keys[0]]
	want, err := os.ReadFile(filepath.Join(dir, id+records.Suffix))
	require.NoError(t, err)
	require.Equal(t, want, written)
	f.set(func() { require.Equal(t, map[string]int{http.MethodPut: 2}, f.asked, "it asks for nothing") })

	again := start(t, append(flags, "--spool", t.TempDir())...) // has lost its spool
	eventually(t, "it is there", func() bool { return strings.Contains(again.log.String(), "outcome=present") })
	require.Equal(t, keys, f.keys())
	require.NotContains(t, again.log.String(), "it is tried again")

	code, _, stderr := command(t, "list", "--bucket", f.bucket())
	require.Equal(t, exitError, code, "to list takes the right to")
	require.Regexp(t, `^tcpdiag-archive: the bucket cannot be listed: .*StatusCode: 403.*\n$`, stderr)
	require.NotContains(t, stderr, "\x1b")
	require.Less(t, len(stderr), 800)
	f.set(func() { f.writeOnly = false })
	code, stdout, stderr := command(t, "list", "--bucket", f.bucket(), "--since", "48h")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, id)
	require.Contains(t, stdout, "max_threads")
	page := filepath.Join(t.TempDir(), "page.html")
	code, _, stderr = command(t, "report", id, "--bucket", f.bucket(), "-o", page)
	require.Equal(t, exitOK, code, stderr)
}

// A bucket that is not there is one clear line, counted and tried again; nothing is lost.
func TestBucketThatIsNotThere(t *testing.T) {
	f, dir, address := newFakeS3(t), t.TempDir()+"/incidents", freeAddress(t)
	f.gone = true
	a := startAgent(t, dir)
	a.incident(8080)
	a.ids(1)
	r := start(t, "--incident-dir", dir, "--spool", t.TempDir(), "--bucket", f.bucket(), "--web.listen-address", address)
	eventually(t, "it is tried again", func() bool {
		return strings.Contains(get(t, "http://"+address+"/metrics"), `tcpdiag_archive_retries_total{to="bucket"} 2`)
	})
	require.Contains(t, r.log.String(), `waiting=1 err="there is no such bucket, container or folder: s3://incidents: make it, an archiver has no right to; recordings wait in the spool"`)
	f.set(func() { f.gone = false })
	eventually(t, "it is stored", func() bool { return strings.Contains(r.log.String(), "outcome=stored") })
	require.Contains(t, get(t, "http://"+address+"/metrics"), `tcpdiag_archive_recordings_total{outcome="dropped"} 0`)
}

// What was dropped for want of room is counted, and is what is missing in the store.
func TestWhatIsDroppedIsCounted(t *testing.T) {
	f, dir, spool, address := newFakeS3(t), t.TempDir(), t.TempDir(), freeAddress(t)
	f.gone = true
	const recordings = 7
	large := largeSample(t, 7<<20)
	for n := range recordings {
		require.NoError(t, os.WriteFile(filepath.Join(dir, sampleID(n)+records.Suffix), large, 0o600))
	}
	r := start(t, "--incident-dir", dir, "--spool", spool, "--spool-max-mib", "32", "--bucket", f.bucket(), "--web.listen-address", address)
	metric := func(line string) func() bool {
		return func() bool { return strings.Contains(get(t, "http://"+address+"/metrics"), line+"\n") }
	}
	eventually(t, "the first are dropped", metric(`tcpdiag_archive_recordings_total{outcome="dropped"} 3`))
	require.Equal(t, 3, strings.Count(r.log.String(), "dropped: another takes its room in the spool"))
	f.set(func() { f.gone = false })
	eventually(t, "the others are stored", metric(`tcpdiag_archive_recordings_total{outcome="stored"} 4`))
	require.Len(t, f.keys(), 2*(recordings-3))
	for n := range recordings {
		require.Equal(t, n >= 3, strings.Contains(strings.Join(f.keys(), " "), sampleID(n)+records.Suffix), "the oldest go first")
	}
}
