package main

import (
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

// TestStackUndisturbed: an agent that records an incident, by turns with and without an archiver that
// follows it: what CPU time it uses, and whether samples are missed.
func TestStackUndisturbed(t *testing.T) {
	s := newStack(t)
	dir, address := filepath.Join(t.TempDir(), "incidents"), freeAddress(t)
	s.program(address, nil, filepath.Join(s.bin, "tcpdiag"), "agent", "--all", "--web.listen-address", address, "--incident-dir", dir)
	overfull(t)
	eventually(t, "an incident is recorded", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*"+records.Suffix))
		return len(files) > 0
	})
	const turn = 20 * time.Second
	to := newReceiver(t)
	for n := range 6 {
		what := "without"
		stop := func() int { return exitOK }
		if n%2 == 1 {
			what = "with"
			stop = start(t, "--interval", "1s", "--incident-dir", dir, "--spool", t.TempDir(), "--otlp-endpoint", to.URL, "--bucket", "file://"+t.TempDir()).stop
		}
		before := ofAgent(t, address)
		time.Sleep(turn)
		after := ofAgent(t, address)
		require.Equal(t, exitOK, stop())
		t.Logf("%s an archiver: %.2f %% of a core, %.0f of %.0f samples missed, the longest gap so far %.0f ms", what,
			100*(after.cpu-before.cpu)/turn.Seconds(), after.missed-before.missed, after.missed+after.taken-before.missed-before.taken, 1000*after.gap)
	}
	require.NotEmpty(t, to.all(), "the archiver did follow it")
}

// overfull is a listener that accepts nothing, with more clients than its queue takes.
func overfull(t *testing.T) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 2))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 8 {
		go func() {
			if c, err := net.DialTimeout("tcp", address, 5*time.Minute); err == nil {
				<-t.Context().Done()
				_ = c.Close()
			}
		}()
	}
}

// figures are what an agent says of itself.
type figures struct{ cpu, missed, taken, gap float64 }

func ofAgent(t *testing.T, address string) (f figures) {
	t.Helper()
	text := get(t, "http://"+address+"/metrics")
	for name, into := range map[string]*float64{
		"process_cpu_seconds_total": &f.cpu, "tcpdiag_missed_ticks_total": &f.missed, "tcpdiag_sample_duration_seconds_count": &f.taken, "tcpdiag_longest_sample_gap_seconds": &f.gap,
	} {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		require.NotNil(t, m, name)
		value, err := strconv.ParseFloat(strings.TrimSpace(m[1]), 64)
		require.NoError(t, err)
		*into = value
	}
	return f
}
