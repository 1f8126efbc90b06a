package accounts

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const tracing = "/sys/kernel/tracing"

// trace is the kernel's own account: when it made a socket for a client of a port
// (inet_sock_set_state from SYN_RECV to ESTABLISHED), and when that one's began to connect
// (from CLOSE to SYN_SENT).
type trace struct {
	mu    sync.Mutex
	made  map[uint16]time.Duration // by the client's port: since the boot (CLOCK_MONOTONIC)
	began map[uint16]time.Duration
	dir   string
}

// newTrace begins; nil where the kernel has no tracefs.
func newTrace(t testing.TB, port uint16) *trace {
	if _, err := os.Stat(tracing + "/instances"); err != nil {
		_ = unix.Mount("tracefs", tracing, "tracefs", 0, "")
	}
	if _, err := os.Stat(tracing + "/events/sock/inet_sock_set_state"); err != nil {
		return nil
	}
	dir, err := os.MkdirTemp(tracing+"/instances", "tcpdiag")
	require.NoError(t, err)
	tr := &trace{made: make(map[uint16]time.Duration), began: make(map[uint16]time.Duration), dir: dir}
	t.Cleanup(func() { _ = unix.Rmdir(dir) })
	event := "events/sock/inet_sock_set_state/"
	tr.write(t, "trace_clock", "mono")
	tr.write(t, event+"filter", fmt.Sprintf("(sport==%d && oldstate==3 && newstate==1) || (dport==%d && oldstate==7 && newstate==2)", port, port))
	tr.write(t, event+"enable", "1")
	pipe, err := os.OpenFile(filepath.Join(dir, "trace_pipe"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	done := make(chan struct{})
	go tr.read(pipe, done)
	t.Cleanup(func() {
		tr.write(t, event+"enable", "0")
		_ = pipe.Close()
		<-done
	})
	return tr
}

func (tr *trace) write(t testing.TB, file, text string) {
	require.NoError(t, os.WriteFile(filepath.Join(tr.dir, file), []byte(text), 0))
}

// read takes in lines like "<idle>-0 [001] ..s.. 8421.103842: inet_sock_set_state:
// family=AF_INET protocol=IPPROTO_TCP sport=8080 dport=40000 … newstate=TCP_ESTABLISHED".
func (tr *trace) read(pipe *os.File, done chan struct{}) {
	defer close(done)
	for s := bufio.NewScanner(pipe); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), ": inet_sock_set_state:")
		if !ok {
			continue
		}
		fields := strings.Fields(before)
		seconds, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		client, at := "dport=", tr.made
		if strings.Contains(after, "newstate=TCP_SYN_SENT") {
			client, at = "sport=", tr.began
		}
		_, port, found := strings.Cut(after, client)
		port, _, _ = strings.Cut(port, " ")
		n, failed := strconv.ParseUint(port, 10, 16)
		if err != nil || failed != nil || !found {
			continue
		}
		tr.mu.Lock()
		at[uint16(n)] = time.Duration(seconds * float64(time.Second))
		tr.mu.Unlock()
	}
}

// all are the sockets that were made, and when their clients began, by the client's port,
// since a moment.
func (tr *trace) all(start time.Duration) (made, began map[uint16]time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	since := func(of map[uint16]time.Duration) map[uint16]time.Duration {
		out := make(map[uint16]time.Duration, len(of))
		for port, at := range of {
			out[port] = max(at-start, 1)
		}
		return out
	}
	return since(tr.made), since(tr.began)
}

// monotonic is the kernel's clock.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}
