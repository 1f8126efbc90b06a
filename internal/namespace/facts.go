package namespace

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// rarely are what is read of a namespace rarely.
type rarely struct {
	sysctl   map[string]int
	sysctlAt time.Time
	// sysctlErr is why it could not be read again: it is of sysctlAt still.
	sysctlErr error
	unread    int // listeners
	sockstat  map[string]int
	devices   map[uint32]string // interface names by index: replaced, never changed
	devicesAt time.Time
	missing   []netip.Addr // of those that are listened on: replaced, never changed
	missingAt time.Time
	unnamed   bool     // an interface of a listener has no name among them
	bound     []uint32 // the interfaces that listeners are bound to
}

// migrates is net.ipv4.tcp_migrate_req.
func (f *rarely) migrates() bool { return f.sysctl["tcp_migrate_req"] == 1 }

func (f *rarely) sysctlOK() bool { return len(f.sysctl) > 0 && f.sysctlErr == nil }

// deviceRest is how long the interfaces' names are believed.
const deviceRest = 10 * time.Second

// readDevices reads the interfaces' names where a listener is bound to one, again
// now and then: an interface can be renamed, and its index be given again.
func (n *Namespace) readDevices(now time.Time) {
	n.mu.Lock()
	due := n.facts.unnamed || len(n.facts.bound) > 0 && now.Sub(n.facts.devicesAt) >= deviceRest
	bound := slices.Clone(n.facts.bound)
	n.mu.Unlock()
	if !due {
		return
	}
	devices, err := n.kernel.Devices(bound)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.facts.devicesAt, n.facts.unnamed = now, false
	if err == nil {
		n.facts.devices = devices
	}
}

// ReadSysctls reads the namespace's sysctls again if they are older than rest.
func (n *Namespace) ReadSysctls(now time.Time, rest time.Duration) {
	n.mu.Lock()
	due := n.facts.sysctl == nil || now.Sub(n.facts.sysctlAt) >= rest
	n.mu.Unlock()
	if !due {
		return
	}
	values, err := n.kernel.Sysctls()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.facts.sysctlErr = err; err == nil {
		n.facts.sysctl, n.facts.sysctlAt = values, now
	}
}

// ReadAddresses asks which of the watched listeners' addresses are there, if that was not asked for rest.
func (n *Namespace) ReadAddresses(now time.Time, rest time.Duration) {
	n.mu.Lock()
	addrs := n.watches.addresses()
	due := len(addrs) > 0 && now.Sub(n.facts.missingAt) >= rest
	n.mu.Unlock()
	if !due {
		return
	}
	missing, err := n.kernel.Missing(addrs)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.facts.missingAt = now; err != nil {
		missing = nil
	}
	n.facts.missing = missing
}

// addresses are those of listeners that are of one interface: all, and those of the loopback and of a link, are left out.
func (ws *watches) addresses() (out []netip.Addr) {
	for i := range ws.list {
		id := ws.list[i].account.ID
		if a := id.Address.Addr(); id.Device == "" && a.IsGlobalUnicast() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// ReadSockstat reads the numbers of sockets; none where they cannot be read.
func (n *Namespace) ReadSockstat() {
	stat, err := n.kernel.Sockstat()
	if err != nil {
		stat = nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.facts.sockstat = stat
}

// Sysctl are the latest sysctls; ok says that they could be read again when they
// were due.
func (n *Namespace) Sysctl() (values map[string]int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.facts.sysctl), n.facts.sysctlOK()
}

// Sockstat are the latest numbers of sockets, nil for none.
func (n *Namespace) Sockstat() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.facts.sockstat
}
