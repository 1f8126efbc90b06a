package namespace

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Kernel is what a network namespace is asked. Lookup, Listeners and
// ListenCounters are the sample path: they allocate nothing, and are never called
// at the same time; nor is ListenersApart at the same time as itself.
type Kernel interface {
	// Lookup makes exact requests; see sockdiag.Conn.LookupEach.
	Lookup(asks []sockdiag.Ask, answer func(int, *sockdiag.Listener, error)) error
	// Listeners dumps the LISTEN sockets; restart is called before a dump that
	// was cut short begins again.
	Listeners(restart func(), found func(*sockdiag.Listener) error) error
	// ListenersApart is the same with a socket of its own: others may be asked meanwhile.
	ListenersApart(restart func(), found func(*sockdiag.Listener) error) error
	// ListenCounters reads the counters of dropped packets.
	ListenCounters(out *netstat.ListenCounters) error

	// Counters reads those and the others, by the kernel's names.
	Counters(out map[string]uint64) error
	// Walk goes once through the table of connections.
	Walk(wanted sockdiag.Wanted, restart func(), found func(*sockdiag.Socket) error) error
	// Connections asks for known connections; see sockdiag.Conn.LookupConnections.
	// It is never called during a Walk.
	Connections(ids []sockdiag.ConnectionID, answer func(int, *sockdiag.Socket, error)) error
	// Sockstat is TCP's line of /proc/net/sockstat.
	Sockstat() (map[string]int, error)
	// Sysctls are those of /proc/sys/net that matter.
	Sysctls() (map[string]int, error)
	// Devices are the names of interfaces by index.
	Devices(indices []uint32) (map[uint32]string, error)
	// Missing are those of some addresses to which no packet is delivered; see netns.MissingAddresses.
	Missing(addrs []netip.Addr) ([]netip.Addr, error)

	// Redial replaces the socket of the sample path by a new one.
	Redial() error
	// Rest closes what Lookup and Listeners do not need, until it is needed.
	Rest() error
	Close() error
}
