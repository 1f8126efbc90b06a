package reading

import (
	"math"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The stages of Headroom, as they are named in model.Limit.
const (
	StageAcceptQueue    = "accept_queue"
	StageMaxConnections = "max_connections"
	StageMaxThreads     = "max_threads"
	StageOpenFiles      = "open_files"
	StageEphemeralPorts = "ephemeral_ports"
)

// What else Step.Limit may be: no stage of the listener.
const (
	LimitConnectionPool = "connection_pool"
	LimitExecutorQueue  = "executor_queue"
	LimitSomaxconn      = "somaxconn"
	LimitCookies        = "tcp_syncookies"
	LimitCPU            = "cpu"
	LimitPorts          = "ip_local_port_range"
	LimitReuse          = "tcp_tw_reuse"
	// No number, and a server that has room for those whom it keeps away.
	LimitAddress = "address"
	LimitRule    = "netfilter_rule"
	LimitPause   = "pause"
)

// WidestPortRange are the ports that ip_local_port_range can have at most, of those that no
// privilege is needed for.
const WidestPortRange = 65535 - 1024 + 1

// Headroom says how full each stage is whose limit is known, from the client
// inwards, and when it will be full if it continues to fill as between the two
// snapshots. before may be nil, and may lie further back than the last snapshot: a
// trend through a longer time is steadier. A stage of which not all was counted
// is left out.
func Headroom(now, before *model.Listener, elapsed time.Duration, sysctl map[string]int, t Thresholds) []model.Limit {
	if now == nil || !now.Listening() {
		return nil
	}
	var out []model.Limit
	for _, s := range gauges() {
		used, most, ok := s.read(now, sysctl)
		if !ok || most <= 0 {
			continue
		}
		l := model.Limit{Name: s.name, Used: used, Max: most, Ratio: float64(used) / float64(most)}
		if was, _, ok := s.read(before, sysctl); ok && sameServer(now, before) && t.rises(was, used) {
			l.FullIn = fullIn(was, used, most, elapsed)
		}
		out = append(out, l)
	}
	return out
}

// sameServer reports whether a trend may be drawn through the two snapshots.
func sameServer(now, before *model.Listener) bool {
	if before == nil || now.Inode != before.Inode {
		return false
	}
	a, b := now.Process, before.Process
	return a == nil || b == nil || a.PID == b.PID && a.StartTime == b.StartTime
}

// rises distinguishes a number that fills up from one that comes and goes: of clients
// that come by chance there are n give or take √n, and of two such snapshots the
// later one is the higher in half of the cases.
func (t Thresholds) rises(was, used int) bool {
	return float64(used-was) >= t.Noise*math.Sqrt(float64(was+used))
}

// fullIn is the time until used reaches most; nil when it is there, or does
// not rise.
func fullIn(was, used, most int, elapsed time.Duration) *time.Duration {
	if used <= was || used >= most || elapsed <= 0 {
		return nil
	}
	left := float64(most-used) / float64(used-was)
	const century = 100 * 365 * 24 * time.Hour
	if left*elapsed.Seconds() > century.Seconds() {
		return nil
	}
	return new(time.Duration(left * float64(elapsed)))
}

// gauge reads how much of a stage is used.
type gauge struct {
	name string
	read func(*model.Listener, map[string]int) (used, most int, ok bool)
}

func gauges() []gauge {
	return []gauge{
		{StageAcceptQueue, func(l *model.Listener, _ map[string]int) (used, most int, ok bool) {
			if l == nil || l.AcceptQueue == nil {
				return 0, 0, false
			}
			return l.AcceptQueue.Length, l.AcceptQueue.Capacity(), true
		}},
		{StageMaxConnections, func(l *model.Listener, _ map[string]int) (used, most int, ok bool) {
			n, ok := SlotsInUse(l)
			if !ok || Partial(l) || ConnectionLimit(l) != LimitKnown {
				return 0, 0, false
			}
			return n, l.Connector.MaxConnections.Value, true
		}},
		{StageMaxThreads, func(l *model.Listener, _ map[string]int) (used, most int, ok bool) {
			most, ok = MaxThreads(l)
			used, seen := BusyThreads(l)
			return used, most, ok && seen && (!Partial(l) || l.Connector.BusyThreads != nil)
		}},
		{StageOpenFiles, func(l *model.Listener, _ map[string]int) (used, most int, ok bool) {
			return OpenFiles(l)
		}},
		{StageEphemeralPorts, ephemeralPorts},
	}
}

// ClientPorts are the clients' ports of one loopback address that have a connection to the listener, and how many there are
// for them: who connects from there is in this network namespace, and shares its range. A server that is reached
// at two loopback addresses has them for each.
func ClientPorts(l *model.Listener, sysctl map[string]int) (used, most int, from netip.Addr, ok bool) {
	first, ok1 := sysctl["ip_local_port_range_min"]
	last, ok2 := sysctl["ip_local_port_range_max"]
	if l == nil || l.Connections == nil || len(l.Connections.TopPeers) == 0 || !ok1 || !ok2 || last < first {
		return 0, 0, from, false
	}
	top := l.Connections.TopPeers[0]
	return top.Connections, last - first + 1, top.Address, top.Address.IsLoopback()
}

// ephemeralPorts are those in use towards the busiest destination. All ports
// of net.ipv4.ip_local_port_range, both ends included, can be used towards one
// destination, less the reserved ones; one in TIME_WAIT that can be had again is as
// good as free.
func ephemeralPorts(l *model.Listener, sysctl map[string]int) (used, most int, ok bool) {
	if l == nil || l.Process == nil || l.Process.Busiest == nil {
		return 0, 0, false
	}
	first, ok1 := sysctl["ip_local_port_range_min"]
	last, ok2 := sysctl["ip_local_port_range_max"]
	if !ok1 || !ok2 || last < first {
		return 0, 0, false
	}
	return l.Process.Busiest.Taken(), last - first + 1, true
}

// LimitNamed finds a stage among the limits.
func LimitNamed(limits []model.Limit, name string) (model.Limit, bool) {
	for _, l := range limits {
		if l.Name == name {
			return l, true
		}
	}
	return model.Limit{}, false
}
