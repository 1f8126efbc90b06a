package hostproc

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// NetCounters are the TCP counters of the process's network namespace since
// that namespace was made, by the kernel's names (include/uapi/linux/snmp.h).
// Any user may read them. A counter that this kernel lacks is absent.
func (fs FS) NetCounters(pid int) (map[string]uint64, error) {
	proc, err := fs.proc.Proc(pid)
	if err != nil {
		return nil, fs.wrap(pid, "net/netstat", err)
	}
	netstat, err := proc.Netstat()
	if err != nil {
		return nil, fs.wrap(pid, "net/netstat", err)
	}
	snmp, err := proc.Snmp()
	if err != nil {
		return nil, fs.wrap(pid, "net/snmp", err)
	}
	out := make(map[string]uint64, 32)
	collect(out, tcpExtCounters(netstat.TcpExt))
	collect(out, tcpCounters(snmp.Tcp))
	return out, fs.wrap(pid, "net/netstat", fs.addMemoryCounters(pid, out))
}

func collect(out map[string]uint64, values map[string]*float64) {
	for name, v := range values {
		if v != nil && *v >= 0 {
			out[name] = uint64(*v)
		}
	}
}

func tcpExtCounters(t procfs.TcpExt) map[string]*float64 {
	return map[string]*float64{
		"ListenOverflows":      t.ListenOverflows,
		"ListenDrops":          t.ListenDrops,
		"TCPReqQFullDrop":      t.TCPReqQFullDrop,
		"TCPReqQFullDoCookies": t.TCPReqQFullDoCookies,
		"SyncookiesSent":       t.SyncookiesSent,
		"SyncookiesRecv":       t.SyncookiesRecv,
		"SyncookiesFailed":     t.SyncookiesFailed,
		"EmbryonicRsts":        t.EmbryonicRsts,
		"TCPTimeouts":          t.TCPTimeouts,
		"TCPSynRetrans":        t.TCPSynRetrans,
	}
}

func tcpCounters(t procfs.Tcp) map[string]*float64 {
	return map[string]*float64{
		"ActiveOpens":  t.ActiveOpens,
		"PassiveOpens": t.PassiveOpens,
		"AttemptFails": t.AttemptFails,
		"EstabResets":  t.EstabResets,
		"CurrEstab":    t.CurrEstab,
		"RetransSegs":  t.RetransSegs,
		"OutRsts":      t.OutRsts,
	}
}

// addMemoryCounters reads the counters that procfs has fields for and never
// fills (seen in 0.23).
func (fs FS) addMemoryCounters(pid int, out map[string]uint64) error {
	data, err := os.ReadFile(fs.path(pid, "net", "netstat"))
	if err != nil {
		return err
	}
	names := []string{"TCPAbortOnMemory", "TCPMemoryPressures"}
	cols, err := findColumns(data, "TcpExt", names)
	if err != nil {
		return err
	}
	values := make([]uint64, len(names))
	if err := cols.read(data, values); err != nil {
		return err
	}
	for i, name := range names {
		if cols.has(i) {
			out[name] = values[i]
		}
	}
	return nil
}

// Sockstat are the TCP sockets of the process's network namespace
// (/proc/PID/net/sockstat): "inuse", "orphan", "tw", and, of the whole
// machine, "alloc" and "mem" (in pages). "inuse" includes the AF_INET6 sockets,
// which /proc/PID/net/sockstat6 has alone (tcpv6_prot; a JVM's are all of them,
// whatever the peer's address); the others have those already.
func (fs FS) Sockstat(pid int) (map[string]int, error) {
	// procfs knows sockstat only of a whole proc; its "net" is that of whatever
	// folder it is given.
	proc, err := procfs.NewFS(fs.path(pid))
	if err != nil {
		return nil, fs.wrap(pid, "net/sockstat", err)
	}
	stat, err := proc.NetSockstat()
	if err != nil {
		return nil, fs.wrap(pid, "net/sockstat", err)
	}
	for _, p := range stat.Protocols {
		if p.Protocol == "TCP" {
			out := sockstatTCP(p)
			more, err := tcp6InUse(proc)
			out["inuse"] += more
			return out, fs.wrap(pid, "net/sockstat6", err)
		}
	}
	return nil, fmt.Errorf("hostproc: net/sockstat of pid %d: no TCP line: %w", pid, ErrMalformed)
}

// tcp6InUse is none where the kernel has no IPv6.
func tcp6InUse(proc procfs.FS) (n int, err error) {
	stat, err := proc.NetSockstat6()
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, p := range stat.Protocols {
		if p.Protocol == "TCP6" {
			n += p.InUse
		}
	}
	return n, nil
}

func sockstatTCP(p procfs.NetSockstatProtocol) map[string]int {
	out := map[string]int{"inuse": p.InUse}
	for name, v := range map[string]*int{"orphan": p.Orphan, "tw": p.TW, "alloc": p.Alloc, "mem": p.Mem} {
		if v != nil {
			out[name] = *v
		}
	}
	return out
}
