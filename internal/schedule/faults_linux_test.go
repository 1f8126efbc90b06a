package schedule

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// faults are what a test lets go wrong between the scheduler and the kernel, by
// namespace.
type faults struct {
	listen, walk, sysctl map[uint64]error
	heard                func(*sockdiag.Listener) // of a dump, before the scheduler
	redirected           bool                     // exact requests go to a port on which nobody listens
	more                 int                      // sockets that sockstat counts in addition
	walked               func(sockdiag.Wanted)    // called before each walk
}

func newFaults() *faults {
	return &faults{listen: make(map[uint64]error), walk: make(map[uint64]error), sysctl: make(map[uint64]error)}
}

// into lets a sampler's namespaces have the faults.
func (f *faults) into(src Sources) Sources {
	src.Open = func(shared *namespace.Shared, pid int) (namespace.Opened, error) {
		o, err := namespace.Open(src.Proc, src.Mount, shared, pid)
		if err == nil {
			o.Kernel = &faulty{o.Kernel, f, uint64(o.ID)}
		}
		return o, err
	}
	return src
}

type faulty struct {
	namespace.Kernel
	*faults
	id uint64
}

func (f *faulty) Lookup(asks []sockdiag.Ask, answer func(int, *sockdiag.Listener, error)) error {
	if err := f.listen[f.id]; err != nil {
		return err
	}
	if f.redirected {
		asks = slices.Clone(asks)
		for i := range asks {
			asks[i].ID.Local = netip.AddrPortFrom(asks[i].ID.Local.Addr(), 1)
		}
	}
	return f.Kernel.Lookup(asks, answer)
}

func (f *faulty) Listeners(restart func(), found func(*sockdiag.Listener) error) error {
	return f.dump(f.Kernel.Listeners, restart, found)
}

func (f *faulty) ListenersApart(restart func(), found func(*sockdiag.Listener) error) error {
	return f.dump(f.Kernel.ListenersApart, restart, found)
}

func (f *faulty) dump(dump func(func(), func(*sockdiag.Listener) error) error, restart func(), found func(*sockdiag.Listener) error) error {
	if err := f.listen[f.id]; err != nil {
		return err
	}
	if f.heard == nil {
		return dump(restart, found)
	}
	return dump(restart, func(l *sockdiag.Listener) error {
		f.heard(l)
		return found(l)
	})
}

func (f *faulty) Walk(wanted sockdiag.Wanted, restart func(), found func(*sockdiag.Socket) error) error {
	if err := f.walk[f.id]; err != nil {
		return err
	}
	if f.walked != nil {
		f.walked(wanted)
	}
	return f.Kernel.Walk(wanted, restart, found)
}

func (f *faulty) Sockstat() (map[string]int, error) {
	stat, err := f.Kernel.Sockstat()
	if f.more == 0 || err != nil {
		return stat, err
	}
	stat = maps.Clone(stat)
	stat["inuse"] += f.more
	return stat, nil
}

func (f *faulty) Sysctls() (map[string]int, error) {
	if err := f.sysctl[f.id]; err != nil {
		return nil, err
	}
	return f.Kernel.Sysctls()
}
