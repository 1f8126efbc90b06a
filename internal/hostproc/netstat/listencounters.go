package netstat

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// ListenCounters are the TcpExt counters of a network namespace that move when
// a listener's queues overflow. They count packets. A counter that the kernel
// lacks stays 0; all of these are there since Linux 2.6.34.
type ListenCounters struct {
	ListenDrops       uint64 // every dropped SYN or final ACK, overflows included
	ListenOverflows   uint64 // those because the accept queue was full
	ReqQFullDrop      uint64 // SYNs dropped at a full SYN queue (TCPReqQFullDrop)
	ReqQFullDoCookies uint64 // SYNs answered with a cookie there (TCPReqQFullDoCookies)
	SyncookiesRecv    uint64 // final ACKs that carried a valid cookie
}

func listenCounterNames() []string {
	return []string{"ListenDrops", "ListenOverflows", "TCPReqQFullDrop", "TCPReqQFullDoCookies", "SyncookiesRecv"}
}

// ListenCountersFile keeps /proc/PID/net/netstat open, for reading it in a hot
// loop. While it is open it keeps the namespace alive, after its last process
// too; so Close it. It is for one goroutine at a time.
type ListenCountersFile struct{ *counterFile }

// OpenListenCounters opens the counters of the process's network namespace.
// Any user may.
func OpenListenCounters(fs hostproc.FS, pid int) (*ListenCountersFile, error) {
	file, err := openCounters(fs, pid, "netstat", "TcpExt", listenCounterNames())
	if err != nil {
		return nil, err
	}
	f := &ListenCountersFile{file}
	if err := f.Read(&ListenCounters{}); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads the counters of this moment, without allocating. On an error c
// stays as it was.
func (f *ListenCountersFile) Read(c *ListenCounters) error {
	if err := f.read(); err != nil {
		return err
	}
	if !f.cols.has(0) || !f.cols.has(1) {
		return fmt.Errorf("hostproc: %s: neither ListenDrops nor ListenOverflows: %w", f.file.Name(), hostproc.ErrMalformed)
	}
	*c = ListenCounters{
		ListenDrops: f.values[0], ListenOverflows: f.values[1],
		ReqQFullDrop: f.values[2], ReqQFullDoCookies: f.values[3], SyncookiesRecv: f.values[4],
	}
	return nil
}
