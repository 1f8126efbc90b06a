package netstat

import (
	"os"

	"github.com/prometheus/procfs"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// netCounters is what NetCountersFile reads, by another library.
func netCounters(fs hostproc.FS, pid int) (map[string]uint64, error) {
	proc, err := fs.Procfs().Proc(pid)
	if err != nil {
		return nil, fs.Wrap(pid, "net/netstat", err)
	}
	netstat, err := proc.Netstat()
	if err != nil {
		return nil, fs.Wrap(pid, "net/netstat", err)
	}
	snmp, err := proc.Snmp()
	if err != nil {
		return nil, fs.Wrap(pid, "net/snmp", err)
	}
	out := make(map[string]uint64, 32)
	collect(out, tcpExtCounters(netstat.TcpExt))
	collect(out, tcpCounters(snmp.Tcp))
	collect(out, map[string]*float64{"OutNoRoutes": snmp.OutNoRoutes, "InDestUnreachs": snmp.InDestUnreachs})
	return out, fs.Wrap(pid, "net/netstat", addMemoryCounters(fs, pid, out))
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
		"OutSegs":      t.OutSegs,
		"OutRsts":      t.OutRsts,
	}
}

// addMemoryCounters reads the counters that procfs has fields for and never
// fills (seen in 0.23).
func addMemoryCounters(fs hostproc.FS, pid int, out map[string]uint64) error {
	data, err := os.ReadFile(fs.Path(pid, "net", "netstat"))
	if err != nil {
		return err
	}
	names := []string{
		"TCPAbortOnMemory", "TCPMemoryPressures", "IPReversePathFilter", "TCPMD5NotFound", "TCPMD5Unexpected", "TCPMD5Failure", "TCPAOBad", "TCPAOKeyNotFound", "TCPAbortOnClose", "TCPAbortOnData", "PAWSTimewait",
	}
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
