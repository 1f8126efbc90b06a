package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Shared is what all namespaces share: the turn to ask the kernel on the sample path, for a sample
// (microseconds) or a checkpoint (a LISTEN dump and the counters of one namespace: some
// tens of microseconds; with thousands of listeners the dump is made without it); the buffers that replies are received
// in; and the CPU time that was spent inside other namespaces, on threads that are not the caller's.
//
// The turn keeps the counters in order. It is no lock of what is known: that is read while
// somebody asks (sampler.mu).
type Shared struct {
	turn       sync.Mutex
	fast, slow sockdiag.Buffer
	apart      sockdiag.Buffer // of lists, where a dump is expensive
	away       atomic.Int64
	crowds     crowds
	fronts     atomic.Int32 // namespaces whose rules are read
	patience   atomic.Int64 // how long a one-shot still waits for them, in nanoseconds
}

// ReadOnce has the readings of netfilter's rules be waited for, that long in all: what is not there in time, nobody
// would see later. The samples wait as well.
func (s *Shared) ReadOnce(patience time.Duration) { s.patience.Store(patience.Nanoseconds()) }

// Away is that time so far, in nanoseconds.
func (s *Shared) Away() int64 { return s.away.Load() }

// machine is a network namespace of this machine.
type machine struct {
	proc   hostproc.FS
	shared *Shared
	ns     *netns.Namespace // open whatever happens to its processes; nil for the agent's own
	id     netns.ID

	fast, slow *sockdiag.Conn
	drops      *netstat.ListenCountersFile
	counters   *netstat.NetCountersFile
	socks      *netstat.SockstatFile
	front      front
}

// Opened is a namespace of this machine.
type Opened struct {
	Kernel
	ID  netns.ID
	Net uint64 // as hostproc.FS.NetID returns it; 0 for the agent's own
}

// Open enters the namespace of pid and opens a socket there. pid 0 is the
// caller's own namespace.
func Open(proc hostproc.FS, mount string, shared *Shared, pid int) (Opened, error) {
	r := &machine{proc: proc, shared: shared}
	var err error
	if r.ns, r.id, err = namespaceOf(proc, mount, pid); err != nil {
		return Opened{}, err
	}
	out := Opened{Kernel: r, ID: r.id}
	if r.ns != nil {
		err = r.inside(func() (err error) {
			out.Net, err = proc.NetID(hostproc.CallingThread)
			return err
		})
	}
	if err == nil {
		err = r.Redial()
	}
	if err != nil {
		return Opened{}, errors.Join(r.wrap(err), r.leave())
	}
	return out, nil
}

// namespaceOf opens the namespace of a process, unless it is the caller's own.
// Whose ns folder may not be read can still be found to share that
// (/proc/PID/net is open to all).
func namespaceOf(proc hostproc.FS, mount string, pid int) (*netns.Namespace, netns.ID, error) {
	current, err := netns.Current()
	if pid == 0 || err != nil {
		return nil, current, err
	}
	ns, err := netns.Open(netns.Path(mount, pid))
	switch {
	case err == nil && ns.ID() == current:
		return nil, current, ns.Close()
	case err == nil:
		return ns, ns.ID(), nil
	case !errors.Is(err, fs.ErrPermission):
		return nil, 0, err
	}
	theirs, err1 := proc.NetID(pid)
	ours, err2 := proc.NetID(os.Getpid())
	if err1 == nil && err2 == nil && theirs == ours {
		return nil, current, nil
	}
	return nil, 0, fmt.Errorf("pid %d is in another network namespace: %w (entering it takes CAP_SYS_ADMIN and CAP_SYS_PTRACE)", pid, fs.ErrPermission)
}

// inside runs fn where /proc/sys/net shows this namespace's values.
func (r *machine) inside(fn func() error) error {
	if r.ns == nil {
		return fn()
	}
	return r.ns.Do(func() error {
		cost, err := cputime.Of(fn)
		r.shared.away.Add(cost.Nanoseconds())
		return err
	})
}

func (r *machine) wrap(err error) error {
	return fmt.Errorf("network namespace %d: %w", r.id, err)
}

func (r *machine) Redial() error {
	var fresh *sockdiag.Conn
	err := r.inside(func() (err error) {
		fresh, err = sockdiag.DialShared(&r.shared.fast)
		return err
	})
	if err != nil {
		return err
	}
	if r.fast != nil {
		_ = r.fast.Close() // it is given up because it does not work
	}
	r.fast = fresh
	return nil
}

func (r *machine) Lookup(asks []sockdiag.Ask, answer func(int, *sockdiag.Listener, error)) error {
	return r.fast.LookupEach(asks, answer)
}

func (r *machine) Listeners(restart func(), found func(*sockdiag.Listener) error) error {
	r.fast.OnRestart = restart
	return r.fast.Listeners(found)
}

func (r *machine) ListenersApart(restart func(), found func(*sockdiag.Listener) error) error {
	var apart *sockdiag.Conn
	err := r.inside(func() (err error) {
		apart, err = sockdiag.DialShared(&r.shared.apart)
		return err
	})
	if err != nil {
		return r.wrap(err)
	}
	apart.OnRestart = restart
	return errors.Join(apart.Listeners(found), apart.Close())
}

// waken opens what following the counters takes. From inside: a process that was
// named may have ended, and its number may be that of another by now, elsewhere.
func (r *machine) waken() error {
	if r.slow != nil { // the last to be opened
		return nil
	}
	err := r.inside(func() (err error) {
		if r.drops, err = netstat.OpenListenCounters(r.proc, hostproc.CallingThread); err != nil {
			return err
		}
		if r.counters, err = netstat.OpenNetCounters(r.proc, hostproc.CallingThread); err != nil {
			return err
		}
		if r.socks, err = netstat.OpenSockstat(r.proc, hostproc.CallingThread); err != nil {
			return err
		}
		r.front.open(r.proc, r.shared)
		r.slow, err = sockdiag.DialShared(&r.shared.slow)
		return err
	})
	if err != nil {
		return errors.Join(r.wrap(err), r.Rest())
	}
	return nil
}

func (r *machine) ListenCounters(out *netstat.ListenCounters) error {
	if err := r.waken(); err != nil {
		return err
	}
	return r.drops.Read(out)
}

func (r *machine) Counters(out map[string]uint64) error {
	if err := r.waken(); err != nil {
		return err
	}
	if err := r.counters.Read(out); err != nil {
		return err
	}
	r.front.read(out)
	return nil
}

func (r *machine) Walk(wanted sockdiag.Wanted, restart func(), found func(*sockdiag.Socket) error) error {
	if err := r.waken(); err != nil {
		return err
	}
	r.slow.OnRestart = restart
	return r.slow.Walk(wanted, found)
}

func (r *machine) Connections(ids []sockdiag.ConnectionID, answer func(int, *sockdiag.Socket, error)) error {
	if err := r.waken(); err != nil {
		return err
	}
	return r.slow.LookupConnections(ids, true, answer)
}

func (r *machine) Sockstat() (map[string]int, error) {
	if err := r.waken(); err != nil {
		return nil, err
	}
	return r.socks.Read()
}

func (r *machine) Sysctls() (out map[string]int, err error) {
	err = r.inside(func() (err error) {
		out, err = netstat.Sysctls(r.proc)
		return err
	})
	return out, err
}

func (r *machine) Devices(indices []uint32) (map[uint32]string, error) {
	var out map[uint32]string
	err := r.inside(func() (err error) {
		out, err = netns.Devices(indices)
		return err
	})
	return out, err
}

func (r *machine) Missing(addrs []netip.Addr) (out []netip.Addr, err error) {
	err = r.inside(func() (err error) {
		out, err = netns.MissingAddresses(addrs)
		return err
	})
	return out, err
}

func (r *machine) Rest() error {
	var errs []error
	if r.slow != nil {
		errs = append(errs, r.slow.Close())
	}
	if r.drops != nil {
		errs = append(errs, r.drops.Close())
	}
	if r.counters != nil {
		errs = append(errs, r.counters.Close())
	}
	if r.socks != nil {
		errs = append(errs, r.socks.Close())
	}
	errs = append(errs, r.front.close())
	r.slow, r.drops, r.counters, r.socks = nil, nil, nil, nil
	return errors.Join(errs...)
}

func (r *machine) Close() error { return errors.Join(r.fast.Close(), r.Rest(), r.leave()) }

func (r *machine) leave() error {
	if r.ns == nil {
		return nil
	}
	return r.ns.Close()
}
