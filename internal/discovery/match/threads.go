package match

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// commLength is what the kernel keeps of a thread's name (TASK_COMM_LEN less
// its terminating zero).
const commLength = 15

// Pool is what thread names say about one connector. Tomcat names its threads
// PROTOCOL-[ADDRESS-]PORT-ROLE (AbstractProtocol.getName, AbstractEndpoint.
// createExecutor); the kernel keeps the first 15 characters.
type Pool struct {
	Protocol string // "http-nio", "https-jsse-nio", "ajp-nio"
	Port     uint16 // 0 when the cut, or an address, took its place
	// Address is the beginning of the bound address when that is in front
	// of the port: "127.0." of http-nio-127.0.0.1-8080-exec-1.
	Address string

	Workers int // "exec": the connector's own worker threads
	Pollers int // "Poller", "ClientPoller-0"
	// Unknown are threads whose role was cut off; there are then no workers.
	Unknown int
}

// Bounds on the thread names of one process, which may be anything.
const (
	maxPools       = 64
	maxThreadNames = 10_000
)

// Pools are the connectors that a process's thread names show.
type Pools struct {
	all    []Pool // sorted by port and protocol
	byPort map[uint16]Pool
	names  map[string]int // threads by name without the number at its end
}

// Threads sorts a process's thread names (task/TID/comm). A shared executor's
// threads carry its own prefix and are found by Named; virtual threads have no
// such name at all.
func Threads(names iter.Seq[string]) Pools {
	found, counts := map[Pool]*Pool{}, map[string]int{} // found by Protocol, Port and Address alone
	for name := range names {
		if stem := strings.TrimRight(name, "0123456789"); counts[stem] > 0 || len(counts) < maxThreadNames {
			counts[stem]++
		}
		key, role, ok := parseThread(name)
		if !ok {
			continue
		}
		pool := found[key]
		if pool == nil {
			if len(found) >= maxPools {
				continue
			}
			pool = new(key)
			found[key] = pool
		}
		pool.count(role)
	}
	return newPools(found, counts)
}

func newPools(found map[Pool]*Pool, names map[string]int) Pools {
	p := Pools{byPort: make(map[uint16]Pool, len(found)), names: names}
	for pool := range maps.Values(found) {
		p.all = append(p.all, *pool)
	}
	slices.SortFunc(p.all, func(a, b Pool) int {
		if a.Port != b.Port {
			return int(a.Port) - int(b.Port)
		}
		return strings.Compare(a.Protocol+a.Address, b.Protocol+b.Address)
	})
	for _, pool := range p.all {
		if _, taken := p.byPort[pool.Port]; !taken && pool.Port != 0 {
			p.byPort[pool.Port] = pool
		}
	}
	return p
}

// count adds a thread by the first letter of its role, which is all that is
// left of it behind a port of four digits.
func (p *Pool) count(role string) {
	if role == "" {
		p.Unknown++
		return
	}
	switch role[0] {
	case 'e':
		p.Workers++
	case 'P', 'C':
		p.Pollers++
	}
}

// Empty says that no thread has a connector's name.
func (p Pools) Empty() bool { return len(p.all) == 0 }

// All are the pools, sorted by port and protocol.
func (p Pools) All() []Pool { return slices.Clone(p.all) }

// For is the worker count and the protocol of the connector on a port, when
// the port survived in the names of its threads. A connector that has no worker
// of its own (shared executor, virtual threads) has a protocol, but is not ok.
func (p Pools) For(port uint16) (workers int, protocol string, ok bool) {
	pool, ok := p.find(port)
	if !ok {
		return 0, "", false
	}
	workers = pool.Count(housekeeping(pool.Protocol))
	return workers, pool.Protocol, workers > 0
}

func (p Pools) find(port uint16) (Pool, bool) {
	pool, ok := p.byPort[port]
	return pool, ok
}

// WithoutPoller says that the pool's workers are there, and the thread is not that hands them requests
// (NioEndpoint.startInternal starts it before the acceptor, and never again).
func (p Pool) WithoutPoller() bool {
	return strings.HasSuffix(p.Protocol, "-nio") && p.Port != 0 && p.Unknown == 0 && p.Workers > 0 && p.Pollers == 0
}

// Count is the number of worker threads. Where the roles were cut off, all
// threads but the given number of others are workers.
func (p Pool) Count(others int) int {
	if p.Unknown == 0 {
		return p.Workers
	}
	return max(0, p.Unknown-others)
}

// housekeeping is the number of a connector's threads that are no workers, in
// today's Tomcats: NIO has an acceptor and a poller, NIO2 neither.
func housekeeping(protocol string) int {
	if strings.HasSuffix(protocol, "nio2") {
		return 0
	}
	return 2
}

// Named is the number of threads whose names begin with prefix and end in a
// number, as those of an executor do ("tomcat-exec-12"); a prefix longer than
// the kernel keeps is compared up to that length.
func (p Pools) Named(prefix string) int {
	if len(prefix) > commLength {
		prefix = prefix[:commLength]
	}
	return p.names[strings.TrimRight(prefix, "0123456789")]
}

// parseThread takes a thread's name apart; role is what is left behind the
// port.
func parseThread(name string) (key Pool, role string, ok bool) {
	protocol, rest, ok := CutProtocol(name)
	if !ok {
		return Pool{}, "", false
	}
	key.Protocol = protocol
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	switch {
	case digits > 0 && digits < len(rest) && rest[digits] == '-':
		key.Port = PortOf(rest[:digits])
		return key, rest[digits+1:], true
	case digits == 5 && digits == len(rest):
		key.Port = PortOf(rest) // http-nio2-18080, the dash is removed
	case strings.ContainsAny(rest, ".:"):
		key.Address = rest
	}
	return key, "", true
}

// CutProtocol splits off SCHEME[-SSL]-ENDPOINT-, where the name has it.
func CutProtocol(name string) (protocol, rest string, ok bool) {
	scheme, rest, ok := strings.Cut(name, "-")
	if !ok || scheme != "http" && scheme != "https" && scheme != "ajp" {
		return "", "", false
	}
	protocol = scheme
	for {
		part, tail, more := strings.Cut(rest, "-")
		switch part {
		case "jsse", "openssl", "opensslffm":
			protocol, rest = protocol+"-"+part, tail
			continue
		case "opensslff": // https-opensslffm-nio-8443: Tomcat 11 (or 10.1) on a JDK with the foreign function interface
			return protocol + "-openssl", "", !more && len(name) == commLength
		case "nio", "nio2", "apr", "bio":
			return protocol + "-" + part, tail, true
		}
		// https-openssl-nio-8443 keeps not even the endpoint.
		return protocol, "", !more && len(name) == commLength && protocol != scheme
	}
}

// PortOf is the port that digits are, 0 where they are none.
func PortOf(digits string) uint16 {
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}
