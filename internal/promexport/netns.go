package promexport

import (
	"os"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

type netnsMetrics struct {
	counters     []kernelCounter
	unattributed *metric
	sockets      *metric
	memory       *metric
	sysctl       *metric
}

// kernelCounter is a metric and the kernel's own name of what it exports.
type kernelCounter struct {
	name   string
	metric *metric
}

func newNetNSMetrics(c *catalogue) netnsMetrics {
	return netnsMetrics{
		counters: []kernelCounter{
			{"ListenOverflows", c.counter("tcpdiag_netns_listen_overflows_total",
				"Packets dropped because an accept queue was full (TcpExt ListenOverflows); part of the listen drops.", "netns")},
			{"ListenDrops", c.counter("tcpdiag_netns_listen_drops_total",
				"Handshake packets dropped by listeners for any reason (TcpExt ListenDrops).", "netns")},
			{"TCPReqQFullDrop", c.counter("tcpdiag_netns_syn_queue_full_drops_total",
				"SYNs dropped because a SYN queue was full and cookies are off (TcpExt TCPReqQFullDrop).", "netns")},
			{"SyncookiesSent", c.counter("tcpdiag_netns_syncookies_sent_total",
				"SYN cookies sent because a SYN queue was full (TcpExt SyncookiesSent).", "netns")},
			{"OutRsts", c.counter("tcpdiag_netns_resets_sent_total",
				"Resets sent (Tcp OutRsts): refused connections among others.", "netns")},
			{"AttemptFails", c.counter("tcpdiag_netns_attempt_fails_total",
				"Handshakes that failed, of both directions (Tcp AttemptFails).", "netns")},
			{"TCPSynRetrans", c.counter("tcpdiag_netns_syn_retransmits_total",
				"SYNs and SYN-ACKs sent again (TcpExt TCPSynRetrans).", "netns")},
		},
		unattributed: c.counter("tcpdiag_netns_unattributed_dropped_packets_total",
			"Dropped handshake packets that no watched listener's own counter accounts for, since the agent started.", "netns"),
		sockets: c.gauge("tcpdiag_netns_tcp_sockets",
			"TCP sockets of sockstat: inuse and tw (TIME_WAIT) of the namespace, alloc and orphan of the whole machine.", "netns", "kind"),
		memory: c.gauge("tcpdiag_netns_tcp_memory_bytes",
			"Memory of all TCP sockets of the machine (sockstat mem, in pages there).", "netns"),
		sysctl: c.gauge("tcpdiag_netns_sysctl",
			"Value of a kernel setting: somaxconn, tcp_max_syn_backlog, tcp_syncookies, tcp_abort_on_overflow, ip_local_port_range_min, ip_local_port_range_max.", "netns", "name"),
	}
}

// sysctlNames is the closed set of the name label.
func sysctlNames() []string {
	return []string{
		"somaxconn", "tcp_max_syn_backlog", "tcp_syncookies", "tcp_abort_on_overflow",
		"ip_local_port_range_min", "ip_local_port_range_max",
	}
}

// socketKinds is the closed set of the kind label, in sockstat's words.
func socketKinds() []string { return []string{"inuse", "orphan", "tw", "alloc"} }

func (c *Collector) namespaces(e emitter, s *model.Snapshot) {
	seen := make(map[uint64]bool, len(s.NetNS))
	for i := range s.NetNS {
		n := &s.NetNS[i]
		if seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		c.namespace(e, labels{netnsLabel(n.ID)}, n)
	}
}

func (c *Collector) namespace(e emitter, ls labels, n *model.NetNS) {
	m := &c.catalogue.netns
	for _, k := range m.counters {
		if v, ok := n.Counters[k.name]; ok {
			e.value(k.metric, ls, float64(v))
		}
	}
	e.value(m.unattributed, ls, float64(n.Unattributed))
	for _, kind := range socketKinds() {
		if v, ok := n.Sockstat[kind]; ok {
			e.value(m.sockets, ls.with(label("kind", kind)), float64(v))
		}
	}
	if pages, ok := n.Sockstat["mem"]; ok {
		e.value(m.memory, ls, float64(pages)*float64(os.Getpagesize()))
	}
	for _, name := range sysctlNames() {
		if v, ok := n.Sysctl[name]; ok {
			e.value(m.sysctl, ls.with(label("name", name)), float64(v))
		}
	}
}
