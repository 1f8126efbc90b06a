package observer

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// space is one network namespace: a socket into it for each of the two loops,
// its counters, and the listeners watched in it.
type space struct {
	id  netns.ID
	ns  *netns.Namespace // open whatever becomes of its processes; nil for the agent's own
	net uint64           // as hostproc.FS.NetID tells it; 0 for the agent's own

	// general: what names no process looks for its listeners here.
	general bool

	fast, slow *sockdiag.Conn
	drops      *hostproc.ListenCountersFile // what the fast loop reads
	counters   *hostproc.NetCountersFile    // what a scan reads
	socks      *hostproc.SockstatFile       // likewise

	watches []watch
	byInode map[uint32]place // member by socket inode, for the LISTEN dump

	attribution  *losses.Attribution
	found        []sockdiag.Listener  // of the latest dump, reused
	sockets      []losses.SocketDrops // likewise
	attributed   []losses.Attributed  // reused
	unattributed uint64
	accounts     map[model.ListenerID]*account
	window       time.Duration
	thresholds   diagnosis.Thresholds
	expects      func(model.ListenerID) bool // sure to be watched once it listens
	served       map[uint16]bool             // expected ports that have had a listener, for as long as it lives
	devices      map[uint32]string           // interface names by index

	asks     []sockdiag.Ask // reused by the fast loop
	asked    []int          // whose each of asks is, by index in watches
	answer   func(int, *sockdiag.Listener, error)
	take     func(*sockdiag.Listener) error
	gather   func(*sockdiag.Listener) error
	moved    bool         // a drop counter moved in this sample
	lost     bool         // it takes a dump: an exact request did not find its listener
	shadowed bool         // and had found it before
	past     []checkpoint // one a scan, over the window
	sysctl   map[string]int
	sysctlAt time.Time // when sysctl was read
	// sysctlErr is why it could not be read again: it is of sysctlAt still.
	sysctlErr error
	sockstat  map[string]int // of the latest scan
	migrates  bool           // net.ipv4.tcp_migrate_req, as of the latest scan

	timeWait   map[*account]int // sockets in TIME_WAIT when a walk last counted them
	timeWaitAt time.Time        // when it did
	foreign    float64          // then the share of the others, of sockstat's

	queueResets uint64 // of all accounts, as countAbandoned last knew them

	delta    model.Counters // from the first checkpoint of past to the last, nil with one
	closed   []departed     // whose listeners closed in the window with clients queued
	outgoing outgoing
	common   *common

	discovered bool // it came with its processes and goes with them
}

// common is what the namespaces of a sampler share.
type common struct {
	fast, slow sockdiag.Buffer // each of the two loops receives into one
	away       atomic.Int64    // ns of CPU time spent inside, on threads that are not the scan's
}

// place finds a member: watches[watch].members[member].
type place struct{ watch, member int }

// checkpoint is what a namespace's counters were at a scan.
type checkpoint struct {
	scan         int
	at           time.Time
	counters     model.Counters
	unattributed uint64
	strangers    uint64 // sum of the drop counters of the sockets that are not watched
}

// openSpace enters the namespace of pid and opens a socket there. pid 0 is the
// caller's own namespace.
func openSpace(src Sources, c *common, pid int) (*space, error) {
	sp := &space{
		common: c, byInode: make(map[uint32]place),
		accounts: make(map[model.ListenerID]*account), served: make(map[uint16]bool), devices: make(map[uint32]string),
	}
	sp.take, sp.gather, sp.answer = sp.takeListener, sp.gatherListener, sp.answered
	var err error
	if sp.ns, sp.id, err = namespaceOf(src, pid); err != nil {
		return nil, err
	}
	if sp.ns != nil {
		err = sp.inside(func() (err error) {
			sp.net, err = src.Proc.NetID(hostproc.CallingThread)
			return err
		})
	}
	if err == nil {
		sp.fast, err = sp.dial(&c.fast)
	}
	if err != nil {
		return nil, errors.Join(sp.wrap(err), sp.leave())
	}
	sp.fast.OnRestart = sp.forget
	return sp, nil
}

// dial opens a socket inside.
func (sp *space) dial(b *sockdiag.Buffer) (c *sockdiag.Conn, err error) {
	err = sp.inside(func() error {
		c, err = sockdiag.DialShared(b)
		return err
	})
	return c, err
}

func (sp *space) wrap(err error) error {
	return fmt.Errorf("network namespace %d: %w", sp.id, err)
}

// awake tells whether the namespace's counters are followed: attribution has
// begun.
func (sp *space) awake() bool { return len(sp.past) > 0 }

// idle tells whether a discovered namespace has nothing that is watched,
// remembered or expected: a look at its listeners is then all that it costs.
func (sp *space) idle() bool {
	return sp.discovered && len(sp.watches) == 0 && len(sp.accounts) == 0 && len(sp.served) == 0
}

// waken opens what following the counters takes.
func (sp *space) waken(src Sources) error {
	if sp.slow != nil { // the last to be opened
		return nil
	}
	// From inside: a process that was named may have ended, and its number may
	// be that of another by now, elsewhere.
	err := sp.inside(func() (err error) {
		if sp.drops, err = src.Proc.OpenListenCounters(hostproc.CallingThread); err != nil {
			return err
		}
		if sp.counters, err = src.Proc.OpenNetCounters(hostproc.CallingThread); err != nil {
			return err
		}
		if sp.socks, err = src.Proc.OpenSockstat(hostproc.CallingThread); err != nil {
			return err
		}
		sp.slow, err = sockdiag.DialShared(&sp.common.slow)
		return err
	})
	if err != nil {
		return errors.Join(sp.wrap(err), sp.sleep())
	}
	return nil
}

// sleep closes it again.
func (sp *space) sleep() error {
	var errs []error
	if sp.slow != nil {
		errs = append(errs, sp.slow.Close())
	}
	if sp.drops != nil {
		errs = append(errs, sp.drops.Close())
	}
	if sp.counters != nil {
		errs = append(errs, sp.counters.Close())
	}
	if sp.socks != nil {
		errs = append(errs, sp.socks.Close())
	}
	sp.slow, sp.drops, sp.counters, sp.socks = nil, nil, nil, nil
	sp.past, sp.delta, sp.attribution, sp.sysctl = nil, nil, nil, nil
	return errors.Join(errs...)
}

// namespaceOf opens the namespace of a process, unless it is the caller's own.
// Whose ns folder may not be read can still be told to share that
// (/proc/PID/net is open to all).
func namespaceOf(src Sources, pid int) (*netns.Namespace, netns.ID, error) {
	own, err := netns.Current()
	if pid == 0 || err != nil {
		return nil, own, err
	}
	ns, err := netns.Open(netns.Path(src.Mount, pid))
	switch {
	case err == nil && ns.ID() == own:
		return nil, own, ns.Close()
	case err == nil:
		return ns, ns.ID(), nil
	case !errors.Is(err, fs.ErrPermission):
		return nil, 0, err
	}
	theirs, err1 := src.Proc.NetID(pid)
	ours, err2 := src.Proc.NetID(os.Getpid())
	if err1 == nil && err2 == nil && theirs == ours {
		return nil, own, nil
	}
	return nil, 0, fmt.Errorf("pid %d is in another network namespace: %w (entering it takes CAP_SYS_ADMIN and CAP_SYS_PTRACE)", pid, fs.ErrPermission)
}

// inside runs fn where /proc/sys/net shows this namespace's values.
func (sp *space) inside(fn func() error) error {
	if sp.ns == nil {
		return fn()
	}
	return sp.ns.Do(func() error {
		cost, err := cpuTime(fn)
		sp.common.away.Add(cost.Nanoseconds())
		return err
	})
}

func (sp *space) close() error { return errors.Join(sp.fast.Close(), sp.sleep(), sp.leave()) }

// leave lets the namespace go.
func (sp *space) leave() error {
	if sp.ns == nil {
		return nil
	}
	return sp.ns.Close()
}

// replace puts the watches of the latest scan in the place of the former ones.
// A listener that went away in between is settled first; one that closed after
// the scan had listed it does not go a second time.
func (sp *space) replace(now time.Time, next []watch) {
	inodes := make(map[uint32]place)
	for w := range next {
		for m := range next[w].members {
			inodes[next[w].members[m].inode] = place{w, m}
		}
	}
	for i := range sp.watches {
		old := &sp.watches[i]
		for m := range old.members {
			p, listed := inodes[old.members[m].inode]
			old.members[m].seen = listed || sp.stands(old.members[m].inode)
			if listed {
				next[p.watch].inherit(old)
				next[p.watch].members[p.member].inherit(&old.members[m])
			}
		}
		old.miss(now, sp.migrates)
	}
	sp.watches, sp.byInode = next, inodes
}

// strangers sums the drop counters of the listeners that are not watched.
func (sp *space) strangers() (sum uint64) {
	for _, d := range sp.sockets {
		if _, ok := sp.byInode[d.Inode]; !ok {
			sum += uint64(d.Drops)
		}
	}
	return sum
}

// device is the name of an interface of this namespace, or its index where the
// name cannot be had.
func (sp *space) device(index uint32) string {
	name, ok := sp.devices[index]
	if ok {
		return name
	}
	name = strconv.FormatUint(uint64(index), 10)
	_ = sp.inside(func() error {
		if dev, err := net.InterfaceByIndex(int(index)); err == nil {
			name = dev.Name
		}
		return nil
	})
	sp.devices[index] = name
	return name
}

// stands tells whether a socket is in the latest dump: one that is only not
// watched any more has reset nobody.
func (sp *space) stands(inode uint32) bool {
	return slices.ContainsFunc(sp.found, func(l sockdiag.Listener) bool { return l.Inode == inode })
}

// inherit carries over what the scan's dump does not tell: that it has closed
// since, as the dump itself calls back who listens (gatherListener).
func (m *member) inherit(old *member) {
	m.gone, m.suspect = old.gone, old.shadowed
}

// inherit carries the time of the last sample over, so that a scan makes no
// gap in the seconds full.
func (w *watch) inherit(old *watch) {
	if w.account == old.account {
		w.at, w.length, w.limit = old.at, old.length, old.limit
	}
}
