package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"
)

// stack are the real servers of a proof, built by internal/test/archive/prove.sh into the folder
// that TCPDIAG_ARCHIVE_STACK names: an OpenTelemetry Collector, rclone's S3 server, Azurite, the agent.
type stack struct {
	t          *testing.T
	bin, files string
}

func newStack(t *testing.T) *stack {
	t.Helper()
	bin := os.Getenv("TCPDIAG_ARCHIVE_STACK")
	if bin == "" {
		t.Skip("a proof: make prove PROOF=archive")
	}
	return &stack{t, bin, t.TempDir()}
}

// program starts one and waits until it listens; the function ends it by a signal.
func (s *stack) program(address string, env []string, name string, args ...string) (stop func(os.Signal)) {
	s.t.Helper()
	cmd := exec.Command(name, args...) //nolint:gosec // the proof's own
	cmd.Env = append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(s.files, filepath.Base(name)+".log"))
	require.NoError(s.t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(s.t, cmd.Start())
	stopped := false
	stop = func(by os.Signal) {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(by)
			_ = cmd.Wait()
			_ = log.Close()
		}
	}
	s.t.Cleanup(func() {
		stop(os.Kill)
		if s.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			s.t.Logf("%s: %s", name, text[max(len(text)-2000, 0):])
		}
	})
	require.Eventually(s.t, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 3*time.Minute, 50*time.Millisecond, name+" listens")
	return stop
}

// collector is the delivered configuration, with a file in place of the backend.
func (s *stack) collector(address, agent string) (stop func(os.Signal)) {
	s.t.Helper()
	over := filepath.Join(s.files, "over.yaml")
	require.NoError(s.t, os.WriteFile(over, fmt.Appendf(nil, `exporters: {file: {path: %q, append: true, flush_interval: 100ms}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {exporters: [file]}, logs: {exporters: [file]}}
`, filepath.Join(s.files, "collected.json")), 0o600))
	config, err := filepath.Abs("../../deploy/collector/collector.yaml")
	require.NoError(s.t, err)
	return s.program(address, []string{
		"HOST_NAME=node-1", "K8S_CLUSTER_NAME=shop", "TCPDIAG_SCRAPE_INTERVAL=1s", "TCPDIAG_AGENT=" + agent, "TCPDIAG_OTLP_LISTEN=" + address,
	}, filepath.Join(s.bin, "collector"), "--config", config, "--config", over)
}

// logged is a log record that the Collector wrote.
type logged struct {
	EventName  string
	Body       struct{ StringValue string }
	Attributes []struct {
		Key   string
		Value struct{ StringValue string }
	}
}

func (l *logged) attribute(key string) string {
	for _, a := range l.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

// collected are the log records, and the lines of metrics as text.
func (s *stack) collected() (logs []logged, metrics string) {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.files, "collected.json"))
	if err != nil {
		return nil, ""
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var one struct {
			ResourceLogs []struct {
				ScopeLogs []struct{ LogRecords []logged }
			}
		}
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			continue
		}
		if len(one.ResourceLogs) == 0 {
			metrics = lines.Text()
		}
		for _, r := range one.ResourceLogs {
			for _, sc := range r.ScopeLogs {
				logs = append(logs, sc.LogRecords...)
			}
		}
	}
	return logs, metrics
}

// missed is what an agent that runs beside says of itself: samples that it could not take in time.
func missed(t *testing.T, agent string) string {
	t.Helper()
	return strings.TrimSpace(strings.Join(regexp.MustCompile(`(?m)^tcpdiag_(missed_ticks_total|longest_sample_gap_seconds) .*$`).FindAllString(get(t, "http://"+agent+"/metrics"), -1), ", "))
}

// TestStack: the collector and the store are away for TCPDIAG_OUTAGE while incidents come, and back.
func TestStack(t *testing.T) {
	outage := 15 * time.Second
	if text := os.Getenv("TCPDIAG_OUTAGE"); text != "" {
		var err error
		outage, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	for name, open := range map[string]func(t *testing.T, s *stack, address string) *server{"S3": s3, "Azure": azure} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			otlp, store, agentAddress := freeAddress(t), freeAddress(t), freeAddress(t)
			s.program(agentAddress, nil, filepath.Join(s.bin, "tcpdiag"), "agent", "--all", "--web.listen-address", agentAddress)
			of := open(t, s, store)
			bucket := of.bucket
			stopStore, stopCollector := of.start(), s.collector(otlp, agentAddress)

			dir, spool := t.TempDir()+"/incidents", t.TempDir()
			r := start(t, "--incident-dir", dir, "--spool", spool, "--otlp-endpoint", "http://"+otlp, "--bucket", bucket, "--cluster", "shop")
			a := startAgent(t, dir)
			a.incident(8080)
			a.ids(1)
			eventually(t, "the first is there", func() bool { logs, _ := s.collected(); return len(logs) == 3 })
			eventually(t, "and stored", func() bool { return strings.Count(r.log.String(), "outcome=stored") == 1 })
			before := missed(t, agentAddress)

			stopCollector(os.Kill)
			stopStore(of.end)
			gone := time.Now()
			for port := range 3 {
				a.incident(uint16(9000 + port))
			}
			ids := a.ids(4)
			time.Sleep(time.Until(gone.Add(outage)))
			require.Contains(t, r.log.String(), "it is tried again")
			during := missed(t, agentAddress)
			of.start()
			s.collector(otlp, agentAddress)
			require.Eventually(t, func() bool {
				logs, _ := s.collected()
				return len(logs) >= 12 && strings.Count(r.log.String(), "outcome=stored") == 4
			}, 3*time.Minute, time.Second, "all of it arrives")

			var want, got []string
			for _, one := range ids {
				want = append(want, one+" begin", one+" change", one+" end")
			}
			// The receiver of metrics hears of its targets some seconds after it was started.
			eventually(t, "and the agent's metrics", func() bool { _, metrics := s.collected(); return metrics != "" })
			logs, metrics := s.collected()
			uids := map[string]bool{}
			for i := range logs {
				got = append(got, logs[i].attribute("tcpdiag.incident.id")+" "+strings.TrimPrefix(logs[i].EventName, "tcpdiag.incident."))
				uids[logs[i].attribute("log.record.uid")] = true
				require.Contains(t, logs[i].Body.StringValue, "Why: All 4 threads are busy.")
			}
			require.Equal(t, want, got, "once and in order")
			require.Len(t, uids, 12)
			require.Contains(t, metrics, `{"key":"service.name","value":{"stringValue":"tcpdiag"}}`)
			require.Contains(t, metrics, `{"key":"host.name","value":{"stringValue":"node-1"}}`)
			require.Contains(t, metrics, `{"key":"k8s.cluster.name","value":{"stringValue":"shop"}}`)

			requireListed(t, bucket, ids)
			of.lose() // and what was in it: one more comes
			a.incident(9100)
			last := a.ids(5)[4]
			eventually(t, "it says what is not there", func() bool { return strings.Contains(r.log.String(), errNoBucket.Error()) })
			of.restore()
			require.Eventually(t, func() bool { return strings.Count(r.log.String(), "outcome=stored") == 5 }, 3*time.Minute, time.Second)

			require.Equal(t, exitOK, r.stop())
			a.stop()
			require.NoError(t, os.RemoveAll(dir)) // the node is deleted
			requireListed(t, bucket, []string{last})
			t.Logf("both away for %v: 12 of 12 log records in order, 4 of 4 recordings, none twice; the agent beside: before %s; at the end of it %s", outage, before, during)
		})
	}
}

// requireListed holds that the bucket has these, and makes a page of the first.
func requireListed(t *testing.T, bucket string, ids []string) {
	t.Helper()
	code, stdout, stderr := command(t, "list", "--bucket", bucket, "--since", "48h")
	require.Equal(t, exitOK, code, stderr)
	for _, one := range ids {
		require.Contains(t, stdout, one)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	code, _, stderr = command(t, "report", ids[0], "--bucket", bucket, "-o", page)
	require.Equal(t, exitOK, code, stderr)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "All 4 threads are busy.")
}

// server is a store that can be ended, and whose bucket can be lost.
type server struct {
	bucket  string
	end     os.Signal
	start   func() (stop func(os.Signal))
	lose    func()
	restore func()
}

// s3 is rclone's server with a folder behind it.
func s3(t *testing.T, s *stack, address string) *server {
	t.Helper()
	folder := t.TempDir()
	bucket := filepath.Join(folder, "incidents")
	require.NoError(t, os.Mkdir(bucket, 0o700))
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
	return &server{
		bucket: "s3://incidents?region=us-east-1&use_path_style=true&endpoint=http://" + address, end: os.Kill,
		start: func() func(os.Signal) {
			return s.program(address, nil, filepath.Join(s.bin, "s3"), "serve", "s3", "--addr", address, "--auth-key", "key,secret-of-the-test", "--vfs-cache-mode", "off", "--dir-cache-time", "0s", folder)
		},
		lose:    func() { require.NoError(t, os.Rename(bucket, folder+".lost")) },
		restore: func() { require.NoError(t, os.Rename(folder+".lost", bucket)) },
	}
}

// azure is Azurite, with its well-known account. It is asked to end: killed it forgets its containers,
// which it writes every few seconds. It ends when its last connection does, so idle ones last a second.
func azure(t *testing.T, s *stack, address string) *server {
	t.Helper()
	folder := t.TempDir()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "devstoreaccount1")
	t.Setenv("AZURE_STORAGE_KEY", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==") //nolint:gosec // Azurite's, public
	key, err := azblob.NewSharedKeyCredential(os.Getenv("AZURE_STORAGE_ACCOUNT"), os.Getenv("AZURE_STORAGE_KEY"))
	require.NoError(t, err)
	client, err := azblob.NewClientWithSharedKeyCredential("http://"+address+"/devstoreaccount1", key, nil)
	require.NoError(t, err)
	made := false
	of := &server{bucket: "azblob://incidents?protocol=http&localemu=true&domain=" + address, end: syscall.SIGTERM}
	of.restore = func() {
		_, err := client.CreateContainer(t.Context(), "incidents", nil)
		require.NoError(t, err)
	}
	of.lose = func() {
		_, err := client.DeleteContainer(t.Context(), "incidents", nil)
		require.NoError(t, err)
	}
	of.start = func() func(os.Signal) {
		stop := s.program(address, nil, filepath.Join(s.bin, "node_modules", ".bin", "azurite-blob"), "--silent", "--skipApiVersionCheck", "--blobKeepAliveTimeout", "1", "--location", folder, "--blobHost", host, "--blobPort", port)
		if !made { // the archiver does not make it: it has no right to
			made = true
			of.restore()
		}
		return stop
	}
	return of
}
