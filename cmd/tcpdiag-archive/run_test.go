package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// output is what a command writes, while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string { o.mu.Lock(); defer o.mu.Unlock(); return o.text.String() }

// running is tcpdiag-archive run.
type running struct {
	t    *testing.T
	log  output
	stop func() int
}

func start(t *testing.T, flags ...string) *running {
	t.Helper()
	r := &running{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"run", "--interval", "100ms", "--shutdown-grace", "0s"}, flags...), io.Discard, &r.log)
	}()
	code, once := -1, sync.Once{}
	r.stop = func() int {
		once.Do(func() { cancel(); code = <-done })
		return code
	}
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 20*time.Millisecond, what)
}

func objects(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".attrs") {
			name, _ := filepath.Rel(dir, path)
			out = append(out, name)
		}
		return err
	}))
	return out
}

func TestIncidentArrivesOnceInOrderWithItsAnswer(t *testing.T) {
	dir, spool, bucket, to := t.TempDir()+"/incidents", t.TempDir(), t.TempDir(), newReceiver(t)
	flags := []string{"--incident-dir", dir, "--spool", spool, "--otlp-endpoint", to.URL, "--bucket", "file://" + bucket, "--cluster", "shop"}
	first := start(t, flags...)
	a := startAgent(t, dir)
	a.see(8080, model.StatusSaturated, model.CauseMaxThreads)
	eventually(t, "the beginning is sent while it lasts", func() bool { return len(to.all()) == 1 })
	a.see(8080, model.StatusLosing, model.CauseMaxConnections)
	eventually(t, "so is the other cause", func() bool { return len(to.all()) == 2 })
	require.Equal(t, exitOK, first.stop())

	second := start(t, flags...) // begins where the first ended
	for range 62 {
		a.see(8080, model.StatusOK, model.CauseNone)
	}
	id := a.ids(1)[0]
	eventually(t, "the end is sent", func() bool { return len(to.all()) == 3 })
	require.Equal(t, []string{id + " begin", id + " change", id + " end"}, events(to.all()))
	requireOnce(t, to.all())
	begin := to.all()[0]
	require.Equal(t, "What: 34 clients of the last 10 s got no answer.\nWhy: All 4 threads are busy.\n"+
		"Do 1: Raise the number of threads: server.tomcat.threads.max 4 → 20 in application.yml.\nNot: A larger backlog makes them wait longer.", begin.Body)
	require.Equal(t, "tcpdiag", begin.Resource["service.name"])
	require.Equal(t, "node-1", begin.Resource["host.name"])
	require.Equal(t, "shop", begin.Resource["k8s.cluster.name"])
	require.Equal(t, "shop", begin.Resource["k8s.namespace.name"])
	require.Equal(t, "orders-7d9", begin.Resource["k8s.pod.name"])
	require.Equal(t, "app", begin.Resource["k8s.container.name"])
	require.Equal(t, "0d5b6f2e-1111-2222-3333-444455556666", begin.Resource["k8s.pod.uid"])
	require.Equal(t, "max_threads", begin.Attributes["tcpdiag.cause"])
	require.Equal(t, "saturated", begin.Attributes["tcpdiag.status"])
	require.NotContains(t, begin.Attributes, "tcpdiag.clients.turned_away", "nobody followed handshakes: absent, not zero")
	require.Equal(t, "max_connections", to.all()[1].Attributes["tcpdiag.cause"])
	require.Equal(t, "ERROR", to.all()[1].Severity)

	eventually(t, "the recording is stored", func() bool { return len(objects(t, bucket)) == 2 })
	key := objects(t, bucket)[0]
	require.Equal(t, "file://"+filepath.Join(bucket, key), begin.Attributes["tcpdiag.recording.url"])
	require.Regexp(t, `^shop/20\d\d-\d\d-\d\d/shop/orders-7d9/`+id+`\.tcpdiag$`, key)
	text, err := os.ReadFile(filepath.Join(bucket, key))
	require.NoError(t, err)
	written, err := os.ReadFile(filepath.Join(dir, id+".tcpdiag"))
	require.NoError(t, err)
	require.Equal(t, written, text)
	sum := sha256.Sum256(text)
	beside, err := os.ReadFile(filepath.Join(bucket, key+".sha256"))
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(sum[:])+"  "+id+".tcpdiag\n", string(beside))

	// An archiver that has lost its spool stores nothing twice.
	require.Equal(t, exitOK, second.stop())
	before, err := os.Stat(filepath.Join(bucket, key))
	require.NoError(t, err)
	third := start(t, "--incident-dir", dir, "--spool", t.TempDir(), "--bucket", "file://"+bucket, "--cluster", "shop")
	eventually(t, "it says that it is there", func() bool { return strings.Contains(third.log.String(), "outcome=present") })
	after, err := os.Stat(filepath.Join(bucket, key))
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.True(t, os.SameFile(before, after))

	// The machine may be deleted: the bucket has the page.
	a.stop()
	require.NoError(t, os.RemoveAll(dir))
	page := filepath.Join(t.TempDir(), "incident.html")
	code, _, stderr := command(t, "report", id, "--bucket", "file://"+bucket, "-o", page)
	require.Equal(t, exitOK, code, stderr)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "All 4 threads are busy.")
	code, stdout, stderr := command(t, "report", id, "--bucket", "file://"+bucket)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "Incident "+id)
	code, stdout, stderr = command(t, "list", "--bucket", "file://"+bucket, "--since", "48h")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, id)
	require.Contains(t, stdout, "losing")
	code, stdout, _ = command(t, "list", "--bucket", "file://"+bucket, "--since", "48h", "--namespace", "other")
	require.Equal(t, exitOK, code)
	require.NotContains(t, stdout, id)
}

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// An archiver is stopped while the collector has a record and has not answered yet. It waits for the
// answer, then the record is not sent again; where none comes it is, with the same uid.
func TestStoppedBeforeTheAnswer(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("answers %v", answers), func(t *testing.T) {
			t.Parallel()
			dir, to := t.TempDir()+"/incidents", newReceiver(t)
			to.hold = make(chan struct{})
			flags := []string{"--incident-dir", dir, "--spool", t.TempDir(), "--otlp-endpoint", to.URL}
			first := start(t, flags...)
			a := startAgent(t, dir)
			a.see(8080, model.StatusSaturated, model.CauseMaxThreads)
			eventually(t, "it has arrived", func() bool { return len(to.all()) == 1 })
			if answers {
				time.AfterFunc(200*time.Millisecond, func() { close(to.hold) })
			}
			require.Equal(t, exitOK, first.stop())

			if !answers {
				close(to.hold)
			}
			start(t, flags...)
			a.see(8080, model.StatusLosing, model.CauseMaxConnections)
			got := func() (out []string) {
				for _, r := range to.all() {
					out = append(out, r.Event)
				}
				return out
			}
			eventually(t, "the next arrives", func() bool { return slices.Contains(got(), "tcpdiag.incident.change") })
			if answers {
				require.Equal(t, []string{"tcpdiag.incident.begin", "tcpdiag.incident.change"}, got())
				requireOnce(t, to.all())
				return
			}
			require.Equal(t, []string{"tcpdiag.incident.begin", "tcpdiag.incident.begin", "tcpdiag.incident.change"}, got())
			require.Equal(t, to.all()[0].Attributes["log.record.uid"], to.all()[1].Attributes["log.record.uid"])
		})
	}
}

// Both ends are away while ten incidents come and the archiver is restarted; then they are back.
func TestOutageLosesNothingThatFitsTheSpool(t *testing.T) {
	const incidents = 3
	dir, spool, to := t.TempDir()+"/incidents", t.TempDir(), newReceiver(t)
	bucket := filepath.Join(t.TempDir(), "away")
	flags := []string{"--incident-dir", dir, "--spool", spool, "--otlp-endpoint", to.URL, "--bucket", "file://" + bucket}
	to.answer(http.StatusServiceUnavailable)
	first := start(t, flags...)
	a := startAgent(t, dir)
	for i := range incidents {
		a.incident(uint16(8080 + i))
	}
	ids := a.ids(incidents)
	waiting := func(kind string) int {
		files, err := filepath.Glob(filepath.Join(spool, "*."+kind))
		require.NoError(t, err)
		return len(files)
	}
	eventually(t, "all of it waits", func() bool { return waiting(kindEvent) == 3*incidents && waiting(kindRecording) == incidents })
	require.Equal(t, exitOK, first.stop())
	require.NoError(t, os.RemoveAll(dir)) // and the agent has removed its recordings meanwhile

	second := start(t, flags...)
	eventually(t, "it tries", func() bool { return strings.Count(second.log.String(), "it is tried again") > 1 })
	require.NoError(t, os.MkdirAll(bucket, 0o700))
	to.answer(0)
	eventually(t, "all of it has arrived", func() bool { return waiting(kindEvent) == 0 && waiting(kindRecording) == 0 })
	var want []string
	for _, id := range ids {
		want = append(want, id+" begin", id+" change", id+" end")
	}
	require.Equal(t, want, events(to.all()))
	requireOnce(t, to.all())
	require.Len(t, objects(t, bucket), 2*incidents)
}

// A collector that refuses a record for good does not hold up those behind it.
func TestRefusedForGoodIsCounted(t *testing.T) {
	dir, to := t.TempDir()+"/incidents", newReceiver(t)
	to.answer(http.StatusBadRequest)
	address := freeAddress(t)
	r := start(t, "--incident-dir", dir, "--spool", t.TempDir(), "--otlp-endpoint", to.URL, "--web.listen-address", address)
	a := startAgent(t, dir)
	a.see(8080, model.StatusSaturated, model.CauseMaxThreads)
	metric := func(line string) func() bool {
		return func() bool { return strings.Contains(get(t, "http://"+address+"/metrics"), line) }
	}
	eventually(t, "the first is refused", metric(`tcpdiag_archive_log_records_total{outcome="rejected"} 1`))
	to.answer(0)
	to.mu.Lock()
	to.partial = 1
	to.mu.Unlock()
	a.see(8080, model.StatusLosing, model.CauseMaxConnections)
	eventually(t, "so is the second, in words", metric(`tcpdiag_archive_log_records_total{outcome="rejected"} 2`))
	to.mu.Lock()
	to.partial = 0
	to.mu.Unlock()
	a.see(8080, model.StatusLosing, model.CauseSlowAccept)
	eventually(t, "the third is sent", metric(`tcpdiag_archive_log_records_total{outcome="sent"} 1`))
	require.Contains(t, get(t, "http://"+address+"/-/healthy"), "healthy")
	require.Contains(t, r.log.String(), "refused for good")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url) //nolint:gosec // the test's own
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

func TestFolderWithStrangersFiles(t *testing.T) {
	dir, bucket := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"000001-20260102T030405Z-8080.tcpdiag": "nothing of ours\n",
		"000002-20260102T030405Z-8080.tcpdiag": string(endedSample(t)),
		"notes.txt":                            "left alone",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "000003-20260102T030405Z-8080.tcpdiag")))
	r := start(t, "--incident-dir", dir, "--spool", t.TempDir(), "--bucket", "file://"+bucket)
	eventually(t, "the recording is stored", func() bool { return len(objects(t, bucket)) == 2 })
	require.Equal(t, 1, strings.Count(r.log.String(), "a recording cannot be read"))
	require.NotContains(t, r.log.String(), "nothing of ours")
	id := "000002-20260102T030405Z-8080"
	code, stdout, stderr := command(t, "replay", id, "--bucket", "file://"+bucket)
	require.Equal(t, exitError, code, "another version of tcpdiag recorded it, in other words")
	require.Regexp(t, `^tcpdiag-archive: \S+: 11 of 11 verdicts are not the recorded ones, .*\n$`, stderr)
	require.Equal(t, 11, strings.Count(stdout, "losing"))
}

func TestWhatABucketMayHold(t *testing.T) {
	bucket := t.TempDir()
	whole := sample(t)
	put := func(pod, id string, text []byte, sum string) {
		file := filepath.Join(bucket, "c", "2026-01-02", "shop", pod, id+records.Suffix)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, text, 0o600))
		if sum != "" {
			require.NoError(t, os.WriteFile(file+records.SumSuffix, []byte(sum+"  x\n"), 0o600))
		}
	}
	good := sha256.Sum256(whole)
	id := func(n int) string { return fmt.Sprintf("%06d-20260102T030405Z-8080", n) }
	put("a", id(1), whole, hex.EncodeToString(good[:]))
	put("a", id(2), whole[:len(whole)/2], hex.EncodeToString(good[:]))
	put("a", id(3), []byte("<html>foreign</html>\n"), "")
	put("a", id(4), bytes.Repeat([]byte("x"), records.MaxObject+1), "")
	put("a", id(5), nil, "")
	put("a", id(6), whole, "")
	put("b", id(6), whole, "")
	put("a", id(7), slices.Concat(whole[:300], whole[400:]), "")
	for n, want := range map[int]string{
		1: "", 2: "damaged or cut off", 3: "not a recording of tcpdiag", 4: "larger than a recording", 5: "not a recording",
		6: "2 recordings have the ID", 7: "not a recording", 8: "there is no recording",
	} {
		code, stdout, stderr := command(t, "report", id(n), "--bucket", "file://"+bucket)
		if want == "" {
			require.Equal(t, exitOK, code, stderr)
			continue
		}
		require.Equal(t, exitError, code, "%d: %s", n, stdout)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.NotContains(t, stderr, "html")
	}
	code, _, stderr := command(t, "report", "c/2026-01-02/shop/b/"+id(6)+records.Suffix, "--bucket", "file://"+bucket)
	require.Equal(t, exitOK, code, stderr)
	for _, args := range [][]string{
		{},
		{"run"},
		{"run", "--bucket", "ftp://x"},
		{"run", "--otlp-endpoint", "collector:4318"},
		{"run", "--otlp-endpoint", "http://u:p@x"},
		{"run", "--bucket", "file:///x", "--spool-max-mib", "1"},
		{"list"},
		{"report", "x", "--bucket", "file://" + bucket},
		{"run", "--bucket", "file:///x", "--cluster", "a/b"},
		{"run", "--bucket", "s3:/incidents"},
		{"run", "--bucket", "gs://"},
		{"run", "--bucket", "file://incidents"},
		{"run", "--bucket", "file:///x?foo=bar"},
		{"run", "--bucket", "azblob://incidents"},
		{"run", "--bucket", "s3://incidents?region=eu-west-1&foo=bar"},
		{"run", "--otlp-endpoint", "http://127.0.0.1:99999"},
		{"run", "--otlp-endpoint", "http://:4318"},
		{"list", "--bucket", "file:///not-there"},
	} {
		code, _, stderr := command(t, args...)
		require.NotEqual(t, exitOK, code, args)
		require.NotContains(t, stderr, "u:p")
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
	}
}

func TestHealth(t *testing.T) {
	dir, spool := t.TempDir(), t.TempDir()
	code, _, _ := command(t, "healthcheck", "--spool", spool)
	require.Equal(t, exitError, code)
	start(t, "--incident-dir", filepath.Join(dir, "not-there-yet"), "--spool", spool, "--bucket", "file://"+dir)
	eventually(t, "it is alive", func() bool { code, _, _ := command(t, "healthcheck", "--spool", spool); return code == exitOK })
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(spool, beatFile), old, old))
	// It is touched again within seconds: the hour is compared at once.
	root, err := os.OpenRoot(spool)
	require.NoError(t, err)
	defer func() { _ = root.Close() }()
	h := &heart{root: root}
	require.False(t, h.alive())
	h.beat()
	require.True(t, h.alive())
}
