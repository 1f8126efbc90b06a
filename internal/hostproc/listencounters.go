package hostproc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
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
type ListenCountersFile struct {
	fd     int
	name   string
	buf    []byte
	cols   *columns
	values []uint64
}

// OpenListenCounters opens the counters of the process's network namespace.
// Any user may.
func (fs FS) OpenListenCounters(pid int) (*ListenCountersFile, error) {
	name := fs.path(pid, "net", "netstat")
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fs.wrap(pid, "net/netstat", err)
	}
	f := &ListenCountersFile{
		fd: fd, name: name,
		// 5 kB on Linux 6.18; one that is too small costs one growth.
		buf:    make([]byte, 16<<10),
		values: make([]uint64, len(listenCounterNames())),
	}
	if err := f.Read(&ListenCounters{}); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads the counters of this moment, without allocating.
func (f *ListenCountersFile) Read(c *ListenCounters) error {
	data, err := f.pread()
	if err != nil {
		return fmt.Errorf("hostproc: %w", &os.PathError{Op: "read", Path: f.name, Err: err})
	}
	if err := f.parse(data); err != nil {
		return fmt.Errorf("hostproc: %s: %w", f.name, err)
	}
	c.ListenDrops, c.ListenOverflows = f.values[0], f.values[1]
	c.ReqQFullDrop, c.ReqQFullDoCookies, c.SyncookiesRecv = f.values[2], f.values[3], f.values[4]
	return nil
}

// Close lets the namespace go.
func (f *ListenCountersFile) Close() error {
	if f.fd < 0 {
		return os.ErrClosed
	}
	fd := f.fd
	f.fd = -1
	return syscall.Close(fd)
}

// pread takes the file in one call, because the kernel writes it out anew for
// each one: os.File.ReadAt would ask again to be sure of the end.
func (f *ListenCountersFile) pread() ([]byte, error) {
	for {
		n, err := syscall.Pread(f.fd, f.buf, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, err
		case n < len(f.buf):
			return f.buf[:n], nil
		}
		f.buf = make([]byte, 2*len(f.buf))
	}
}

func (f *ListenCountersFile) parse(data []byte) error {
	if f.cols != nil && f.cols.read(data, f.values) == nil {
		return nil
	}
	cols, err := findColumns(data, "TcpExt", listenCounterNames())
	if err != nil {
		return err
	}
	if !cols.has(0) || !cols.has(1) {
		return fmt.Errorf("neither ListenDrops nor ListenOverflows: %w", ErrMalformed)
	}
	f.cols = cols
	return cols.read(data, f.values)
}
