package netstat

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// SockstatFile keeps the numbers of a network namespace's sockets open.
type SockstatFile struct{ v4, v6 *procfile.Shared }

// OpenSockstat opens /proc/PID/net/sockstat and sockstat6, which any user may
// read. The files stay those of that namespace.
func OpenSockstat(fs hostproc.FS, pid int) (*SockstatFile, error) {
	v4, err := share(fs, pid, "sockstat")
	if err != nil {
		return nil, fs.Wrap(pid, "net/sockstat", err)
	}
	v6, err := share(fs, pid, "sockstat6")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel may have no IPv6
		return nil, errors.Join(fs.Wrap(pid, "net/sockstat6", err), v4.Close())
	}
	f := &SockstatFile{v4, v6}
	if _, err := f.Read(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read takes the TCP sockets of the namespace: "inuse", "orphan", "tw", and, of
// the whole machine, "alloc" and "mem" (in pages). "inuse" includes the AF_INET6
// sockets, which sockstat6 has alone (tcpv6_prot; a JVM's are all of them,
// whatever the peer's address); the others have those already.
func (f *SockstatFile) Read() (map[string]int, error) {
	out, err := readSockstat(f.v4, "TCP:")
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fmt.Errorf("hostproc: %s: no TCP line: %w", f.v4.Name(), hostproc.ErrMalformed)
	}
	if f.v6 == nil {
		return out, nil
	}
	more, err := readSockstat(f.v6, "TCP6:")
	if err != nil {
		return nil, err
	}
	out["inuse"] += more["inuse"]
	return out, nil
}

// Close closes both files, and lets their network namespace go.
func (f *SockstatFile) Close() error {
	err := f.v4.Close()
	if f.v6 != nil {
		err = errors.Join(err, f.v6.Close())
	}
	return err
}

func readSockstat(f *procfile.Shared, protocol string) (out map[string]int, err error) {
	err = f.Read(func(data []byte) (err error) {
		if out, err = parseSockstat(data, protocol); err != nil {
			return fmt.Errorf("hostproc: %s: %w", f.Name(), err)
		}
		return nil
	})
	return out, err
}

// parseSockstat takes the line of a protocol, "TCP: inuse 4 orphan 0"; nil when
// there is none.
func parseSockstat(data []byte, protocol string) (map[string]int, error) {
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != protocol {
			continue
		}
		out := make(map[string]int, len(fields)/2)
		for rest := fields[1:]; len(rest) > 0; rest = rest[2:] {
			if len(rest) < 2 {
				return nil, fmt.Errorf("%q: %w", line, hostproc.ErrMalformed)
			}
			n, ok := procfile.Decimal(rest[1])
			if !ok {
				return nil, fmt.Errorf("%q: %w", line, hostproc.ErrMalformed)
			}
			out[string(rest[0])] = n
		}
		return out, nil
	}
	return nil, nil
}
