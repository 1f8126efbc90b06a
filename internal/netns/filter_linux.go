package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Filter asks a network namespace's netfilter for the counters of what it drops. All of
// it takes CAP_NET_ADMIN there (nfnetlink_rcv).
type Filter struct {
	socket *nl.SocketHandle

	mu      sync.Mutex    // of reading
	reading chan struct{} // closed when the rules have been read; nil where nobody does
	latest  rules
}

// rules are those of the latest reading, and when they may be read again: with a cluster's thousands of
// rules a reading takes tens of milliseconds, and a stranger may have a million.
type rules struct {
	counts   map[string]uint64
	begun    time.Time
	next     time.Time
	readings uint64
	partial  bool // there were more than mostRules
	err      error
}

// OpenFilter opens that of the calling thread's namespace.
func OpenFilter() (*Filter, error) {
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("netns: netfilter: %w", err)
	}
	f := &Filter{socket: &nl.SocketHandle{Socket: socket}}
	patience := unix.NsecToTimeval(filterPatience.Nanoseconds())
	if err := errors.Join(socket.SetSendTimeout(&patience), socket.SetReceiveTimeout(&patience)); err != nil {
		return nil, errors.Join(fmt.Errorf("netns: netfilter: %w", err), f.Close())
	}
	return f, nil
}

// filterPatience is how long the kernel may take to answer.
const filterPatience = 2 * time.Second

// Close closes its socket, which ends a reading.
func (f *Filter) Close() error { f.socket.Close(); return nil }

// ask makes a dump of the kernel's messages of one kind.
func (f *Filter) ask(kind int, each func(family uint8, attributes []byte)) (err error) {
	for range dumpTries {
		request := nl.NewNetlinkRequest(kind, unix.NLM_F_DUMP)
		request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC})
		request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: f.socket}
		err = request.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(message []byte) bool {
			if len(message) >= nl.SizeofNfgenmsg {
				each(message[0], message[nl.SizeofNfgenmsg:])
			}
			return true
		})
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("netns: netfilter: %w", err)
	}
	return nil
}

// conntrackStatistics is IPCTNL_MSG_CT_GET_STATS_CPU of ctnetlink
// (include/uapi/linux/netfilter/nfnetlink_conntrack.h).
const conntrackStatistics = unix.NFNL_SUBSYS_CTNETLINK<<8 | 4

// Conntrack adds the counters of connection tracking to out, summed over all processors:
// those that /proc/net/stat/nf_conntrack has where the kernel is built with that.
func (f *Filter) Conntrack(out map[string]uint64) error {
	sums := make(map[string]uint64, 4)
	err := f.ask(conntrackStatistics, func(_ uint8, attributes []byte) {
		for kind, value := range attributesOf(attributes) {
			if name := conntrackStatistic(kind); name != "" && len(value) >= 4 {
				sums[name] += uint64(binary.BigEndian.Uint32(value))
			}
		}
	})
	if err == nil {
		maps.Copy(out, sums)
	}
	return err
}

// conntrackStatistic is the name of a CTA_STATS_… (enum ctattr_stats_cpu).
func conntrackStatistic(kind uint16) string {
	switch kind {
	case 9:
		return "nf_conntrack_insert_failed"
	case 10:
		return "nf_conntrack_drop"
	case 11:
		return "nf_conntrack_early_drop"
	case 15:
		return "nf_conntrack_chaintoolong"
	}
	return ""
}

const (
	// rulesRest is how much longer than a reading of the rules took the next one waits, for each namespace whose rules are read.
	rulesRest = 50
	// rulesPatience is how long a reading is waited for: what takes longer is there the next time.
	rulesPatience = 5 * time.Millisecond
	// onceRest is the longest rest for who looks once: nobody reads what has moved since.
	onceRest = 200 * time.Millisecond
	// mostRules is of how many rules the counters are read. Where there are more, one that is
	// not read may be new or not, and may drop or not: RulesRead is left out.
	mostRules = 64
)

// Rules adds the packets of the rules that drop or reject and have a counter to out, each
// by its table, chain and handle, as "nft list ruleset -a" shows them (iptables-nft's are
// among them): "nft inet filter input handle 5 drop", with "dport 8080" behind it
// where it is for that port alone. It never waits for long, however many rules there are: they are read beside the caller. The
// rules of that many namespaces are read, which share what it may cost.
func (f *Filter) Rules(out map[string]uint64, namespaces int) error {
	return f.rules(out, namespaces, rulesPatience, false)
}

// RulesOnce is the same for who looks once, and waits that long: on a machine that others crowd a reading
// of a few rules takes its time, too, and no later one shows them.
func (f *Filter) RulesOnce(out map[string]uint64, patience time.Duration) error {
	return f.rules(out, 1, patience, true)
}

func (f *Filter) rules(out map[string]uint64, namespaces int, patience time.Duration, once bool) error {
	f.mu.Lock()
	done, now := f.reading, time.Now()
	due := !now.Before(f.latest.next) || once && now.Sub(f.latest.begun) >= onceRest
	if done == nil && due {
		done = make(chan struct{})
		f.reading = done
		go f.readRules(max(namespaces, 1), done)
	}
	f.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-time.After(patience):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest.err != nil {
		return f.latest.err
	}
	maps.Copy(out, f.latest.counts)
	if !f.latest.partial && f.latest.readings > 0 {
		out[rulesRead] = f.latest.readings
	}
	return nil
}

func (f *Filter) readRules(namespaces int, done chan struct{}) {
	read := rules{counts: make(map[string]uint64), begun: time.Now()}
	read.err = f.ask(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETRULE, func(family uint8, message []byte) {
		r := ruleOf(family, message)
		if !r.countsLosses() {
			return
		}
		if read.partial = read.partial || len(read.counts) >= mostRules; !read.partial {
			read.counts[r.name()] += r.packets
		}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	read.readings = f.latest.readings + 1
	read.next = read.begun.Add(time.Duration(rulesRest*namespaces) * time.Since(read.begun))
	f.latest, f.reading = read, nil
	close(done)
}

// rulesRead counts the readings of all rules (model.RulesRead).
const rulesRead = "nftables_rules_read"

// rule is what is read of one.
type rule struct {
	family       string
	table, chain string
	handle       uint64
	packets      uint64
	counts       bool
	verdict      string // "drop" or "reject", "" for any other
	port         uint16 // of TCP or UDP, 0: not for one alone
	ports        bool   // the port in register was just loaded
}

func (r *rule) countsLosses() bool { return r.counts && r.verdict != "" }

func (r *rule) name() string {
	s := fmt.Sprintf("nft %s %s %s handle %d %s", r.family, r.table, r.chain, r.handle, r.verdict)
	if r.port != 0 {
		s += fmt.Sprintf(" dport %d", r.port)
	}
	return s
}

// ruleOf decodes a rule (nf_tables_fill_rule_info).
func ruleOf(family uint8, message []byte) (r rule) {
	r.family = familyName(family)
	for kind, value := range attributesOf(message) {
		switch {
		case kind == unix.NFTA_RULE_TABLE:
			r.table = plain(value)
		case kind == unix.NFTA_RULE_CHAIN:
			r.chain = plain(value)
		case kind == unix.NFTA_RULE_HANDLE && len(value) >= 8:
			r.handle = binary.BigEndian.Uint64(value)
		case kind == unix.NFTA_RULE_EXPRESSIONS:
			for _, element := range attributesOf(value) {
				r.expression(element)
			}
		}
	}
	return r
}

// familyName is what nft calls it.
func familyName(family uint8) string {
	switch family {
	case unix.NFPROTO_INET:
		return "inet"
	case unix.NFPROTO_IPV4:
		return "ip"
	case unix.NFPROTO_IPV6:
		return "ip6"
	case unix.NFPROTO_NETDEV:
		return "netdev"
	case unix.NFPROTO_BRIDGE:
		return "bridge"
	}
	return "arp"
}

func (r *rule) expression(element []byte) {
	var name string
	var data []byte
	for kind, value := range attributesOf(element) {
		switch kind {
		case unix.NFTA_EXPR_NAME:
			name = plain(value)
		case unix.NFTA_EXPR_DATA:
			data = value
		}
	}
	loaded := r.ports
	r.ports = false
	switch name {
	case "counter":
		if n := attribute(data, unix.NFTA_COUNTER_PACKETS); len(n) >= 8 {
			r.counts, r.packets = true, binary.BigEndian.Uint64(n)
		}
	case "immediate":
		code := attribute(attribute(attribute(data, unix.NFTA_IMMEDIATE_DATA), unix.NFTA_DATA_VERDICT), unix.NFTA_VERDICT_CODE)
		if len(code) >= 4 && binary.BigEndian.Uint32(code) == dropVerdict {
			r.verdict = "drop"
		}
	case "reject":
		r.verdict = "reject"
	case "target":
		if plain(attribute(data, unix.NFTA_TARGET_NAME)) == "REJECT" {
			r.verdict = "reject"
		}
	case "payload":
		r.ports = destinationPort(data)
	case "cmp":
		if value := attribute(attribute(data, unix.NFTA_CMP_DATA), unix.NFTA_DATA_VALUE); loaded && len(value) >= 2 && equals(data) {
			r.port = binary.BigEndian.Uint16(value)
		}
	case "match": // of iptables: struct xt_tcp and xt_udp begin with two ranges of ports
		info := attribute(data, unix.NFTA_MATCH_INFO)
		if protocol := plain(attribute(data, unix.NFTA_MATCH_NAME)); (protocol == "tcp" || protocol == "udp") && len(info) >= 8 {
			if from, to := binary.NativeEndian.Uint16(info[4:]), binary.NativeEndian.Uint16(info[6:]); from == to {
				r.port = from
			}
		}
	}
}

// dropVerdict is NF_DROP.
const dropVerdict = 0

// destinationPort reports whether a payload expression loads it.
func destinationPort(data []byte) bool {
	number := func(kind uint16) uint32 {
		if v := attribute(data, kind); len(v) >= 4 {
			return binary.BigEndian.Uint32(v)
		}
		return 0
	}
	return number(unix.NFTA_PAYLOAD_BASE) == unix.NFT_PAYLOAD_TRANSPORT_HEADER &&
		number(unix.NFTA_PAYLOAD_OFFSET) == 2 && number(unix.NFTA_PAYLOAD_LEN) == 2
}

func equals(data []byte) bool {
	op := attribute(data, unix.NFTA_CMP_OP)
	return len(op) >= 4 && binary.BigEndian.Uint32(op) == unix.NFT_CMP_EQ
}

// plain is a name without what could be taken for something else: whoever administers a
// namespace gives names to its tables.
func plain(b []byte) string {
	const longest = 32
	name := unix.ByteSliceToString(b)
	s := strings.Map(func(c rune) rune {
		if c < 0x7f && c > ' ' {
			return c
		}
		return '?'
	}, name)
	return s[:min(len(s), longest)]
}
