package netstat

import (
	"errors"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// NetCountersFile reads the TCP counters, and one each of IP and ICMP, of a network namespace since that was
// made, by the kernel's names (include/uapi/linux/snmp.h), from files kept open: a
// tenth of what opening them each time costs. Like ListenCountersFile it keeps the
// namespace alive until it is closed, and is for one goroutine at a time.
type NetCountersFile struct{ netstat, snmp, ip, icmp *counterFile }

// OpenNetCounters opens the counters of the process's network namespace. Any
// user may.
func OpenNetCounters(fs hostproc.FS, pid int) (*NetCountersFile, error) {
	netstat, err := openCounters(fs, pid, "netstat", "TcpExt", append(listenCounterNames(),
		"SyncookiesSent", "SyncookiesFailed", "EmbryonicRsts", "TCPTimeouts", "TCPSynRetrans", "TCPAbortOnMemory", "TCPMemoryPressures",
		"IPReversePathFilter", "TCPMD5NotFound", "TCPMD5Unexpected", "TCPMD5Failure", "TCPAOBad", "TCPAOKeyNotFound", "TCPAbortOnClose", "TCPAbortOnData", "PAWSTimewait"))
	if err != nil {
		return nil, err
	}
	snmp, err := openCounters(fs, pid, "snmp", "Tcp", []string{
		"ActiveOpens", "PassiveOpens", "AttemptFails", "EstabResets", "CurrEstab", "OutSegs", "RetransSegs", "OutRsts",
	})
	if err != nil {
		_ = netstat.Close()
		return nil, err
	}
	ip, err := openCounters(fs, pid, "snmp", "Ip", []string{"OutNoRoutes"})
	if err != nil {
		return nil, errors.Join(err, netstat.Close(), snmp.Close())
	}
	icmp, err := openCounters(fs, pid, "snmp", "Icmp", []string{"InDestUnreachs"})
	if err != nil {
		return nil, errors.Join(err, netstat.Close(), snmp.Close(), ip.Close())
	}
	return &NetCountersFile{netstat, snmp, ip, icmp}, nil
}

// Read puts the counters of this moment into out, by the kernel's names. One
// that this kernel lacks is absent. On an error out may be partly written.
func (f *NetCountersFile) Read(out map[string]uint64) error {
	for _, file := range []*counterFile{f.netstat, f.snmp, f.ip, f.icmp} {
		if err := file.read(); err != nil {
			return err
		}
		for i, name := range file.names {
			if file.cols.has(i) {
				out[name] = file.values[i]
			}
		}
	}
	return nil
}

// Close lets the namespace go.
func (f *NetCountersFile) Close() error {
	return errors.Join(f.netstat.Close(), f.snmp.Close(), f.ip.Close(), f.icmp.Close())
}
