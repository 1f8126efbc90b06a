package netstat

import (
	"errors"
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// HandshakeCounters are the TCP counters of a network namespace of which one moves
// whenever a SYN is not simply answered by a SYN-ACK, once.
type HandshakeCounters struct {
	Sent    uint64 // segments (Tcp OutSegs)
	Drops   uint64 // TcpExt ListenDrops
	Cookies uint64 // TcpExt TCPReqQFullDoCookies
	Repeats uint64 // TcpExt TCPSynRetrans: SYN-ACKs, and SYNs of its own
	Resets  uint64 // Tcp OutRsts
	Aborted uint64 // TcpExt EmbryonicRsts
	Killed  uint64 // Tcp EstabResets
	Opened  uint64 // Tcp PassiveOpens
}

// HandshakeCountersFile keeps /proc/PID/net/netstat and snmp open. While it is open it
// keeps the namespace alive; so Close it. It is for one goroutine at a time.
type HandshakeCountersFile struct{ netstat, snmp *counterFile }

// OpenHandshakeCounters opens the counters of the process's network namespace. Any user
// may.
func OpenHandshakeCounters(fs hostproc.FS, pid int) (*HandshakeCountersFile, error) {
	netstat, err := openCounters(fs, pid, "netstat", "TcpExt", []string{"ListenDrops", "TCPReqQFullDoCookies", "TCPSynRetrans", "EmbryonicRsts"})
	if err != nil {
		return nil, err
	}
	snmp, err := openCounters(fs, pid, "snmp", "Tcp", []string{"OutSegs", "OutRsts", "EstabResets", "PassiveOpens"})
	if err != nil {
		return nil, errors.Join(err, netstat.Close())
	}
	return &HandshakeCountersFile{netstat, snmp}, nil
}

// Read reads the counters of this moment, without allocating. It fails where the kernel
// lacks one: without it nothing is certain. On an error c stays as it was.
func (f *HandshakeCountersFile) Read(c *HandshakeCounters) error {
	for _, file := range []*counterFile{f.netstat, f.snmp} {
		if err := file.read(); err != nil {
			return err
		}
		for i, name := range file.names {
			if !file.cols.has(i) {
				return fmt.Errorf("hostproc: %s: no %s: %w", file.file.Name(), name, hostproc.ErrMalformed)
			}
		}
	}
	ext, tcp := f.netstat.values, f.snmp.values
	*c = HandshakeCounters{
		Drops: ext[0], Cookies: ext[1], Repeats: ext[2], Aborted: ext[3],
		Sent: tcp[0], Resets: tcp[1], Killed: tcp[2], Opened: tcp[3],
	}
	return nil
}

// Close lets the namespace go.
func (f *HandshakeCountersFile) Close() error { return errors.Join(f.netstat.Close(), f.snmp.Close()) }
