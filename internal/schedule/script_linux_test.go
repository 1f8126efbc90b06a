package schedule

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/evidence/reader"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// kernel is a network namespace that a test writes.
type kernel struct {
	mu        sync.Mutex
	listeners []sockdiag.Listener
	sockets   []sockdiag.Socket
	counters  map[string]uint64
	sysctls   map[string]int
	sockstat  map[string]int
	fails     error // of whatever goes through netlink
	walkFails error
	redials   int
	walks     int
	apart     int // walks for outgoing connections alone
	closed    bool
	listing   func() // called before each listing
	walked    func() // called after each walk, while nothing else changes

	exact      int           // how often known connections were asked for
	asked      int           // how many
	exactFails error         // of those
	walkTakes  time.Duration // of CPU time
}

func newKernel(listeners ...sockdiag.Listener) *kernel {
	return &kernel{
		listeners: listeners, counters: map[string]uint64{}, sockstat: map[string]int{},
		sysctls: map[string]int{"somaxconn": 4096, "ip_local_port_range_min": 32768, "ip_local_port_range_max": 60999},
	}
}

// change lets a test change it while the clocks go.
func (k *kernel) change(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
}

// overflow drops n packets at its first listener, whose queue is full.
func (k *kernel) overflow(n int) {
	l := &k.listeners[0]
	l.RecvQ = l.SendQ + 1
	l.Drops += uint32(n)
	k.counters["ListenDrops"] += uint64(n)
	k.counters["ListenOverflows"] += uint64(n)
}

func (k *kernel) Lookup(asks []sockdiag.Ask, answer func(int, *sockdiag.Listener, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails != nil {
		return k.fails
	}
	for i, ask := range asks {
		at := slices.IndexFunc(k.listeners, func(l sockdiag.Listener) bool { return l.ListenerID == ask.ID && l.Inode == ask.Inode })
		if at < 0 {
			answer(i, nil, sockdiag.ErrNotFound)
		} else {
			answer(i, &k.listeners[at], nil)
		}
	}
	return nil
}

func (k *kernel) Listeners(_ func(), found func(*sockdiag.Listener) error) error {
	if k.listing != nil {
		k.listing()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails != nil {
		return k.fails
	}
	for i := range k.listeners {
		if err := found(&k.listeners[i]); err != nil {
			return err
		}
	}
	return nil
}

func (k *kernel) ListenersApart(restart func(), found func(*sockdiag.Listener) error) error {
	return k.Listeners(restart, found)
}

func (k *kernel) ListenCounters(out *netstat.ListenCounters) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	out.ListenDrops, out.ListenOverflows = k.counters["ListenDrops"], k.counters["ListenOverflows"]
	return nil
}

func (k *kernel) Counters(out map[string]uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, n := range k.counters {
		out[name] = n
	}
	return nil
}

func (k *kernel) Walk(wanted sockdiag.Wanted, _ func(), found func(*sockdiag.Socket) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.walks++
	if !wanted.Info {
		k.apart++
	}
	if k.walkFails != nil {
		return k.walkFails
	}
	for begun, _ := cputime.Thread(); ; {
		if now, _ := cputime.Thread(); now-begun >= k.walkTakes {
			break
		}
	}
	for i := range k.sockets {
		s := k.sockets[i]
		if wanted.Ports.Has(s.Local.Port()) && wanted.States.Without(s.State) != wanted.States {
			if !wanted.Info {
				s.Info, s.HasInfo = sockdiag.TCPInfo{}, false
			}
			if err := found(&s); err != nil {
				return err
			}
		}
	}
	if k.walked != nil {
		k.walked()
	}
	return nil
}

func (k *kernel) Connections(ids []sockdiag.ConnectionID, answer func(int, *sockdiag.Socket, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.exact++
	k.asked += len(ids)
	at := make(map[uint64]int, len(k.sockets))
	for i := range k.sockets {
		at[k.sockets[i].Cookie] = i
	}
	for i, id := range ids {
		if at, ok := at[id.Cookie]; ok && k.sockets[at].ID() == id {
			answer(i, &k.sockets[at], nil)
		} else {
			answer(i, nil, sockdiag.ErrNotFound)
		}
	}
	return k.exactFails
}

func (k *kernel) Sockstat() (map[string]int, error) { return k.sockstat, nil }
func (k *kernel) Sysctls() (map[string]int, error)  { return k.sysctls, nil }
func (k *kernel) Devices([]uint32) (map[uint32]string, error) {
	return map[uint32]string{}, nil
}
func (k *kernel) Missing([]netip.Addr) ([]netip.Addr, error) { return nil, nil }
func (k *kernel) Rest() error                                { return nil }

func (k *kernel) Redial() error {
	k.change(func() { k.redials++ })
	return nil
}

func (k *kernel) Close() error {
	k.change(func() { k.closed = true })
	return nil
}

// listensOn is a LISTEN socket with a backlog of 5.
func listensOn(port uint16, inode uint32) sockdiag.Listener {
	return sockdiag.Listener{
		ListenerID: sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), port)},
		Inode:      inode, SendQ: 5, HasDrops: true,
	}
}

// kind is what a connection does.
type kind int

const (
	serving kind = iota // a request was read and not answered
	resting             // between two requests
	queued              // not accepted
	ended               // in TIME_WAIT
)

// connected are n connections of a port, with distinct peers and inodes.
func connected(port uint16, n int, what kind) (out []sockdiag.Socket) {
	for i := range n {
		s := sockdiag.Socket{
			Family: sockdiag.FamilyIPv4, State: sockdiag.Established, HasInfo: true,
			Local:  netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port),
			Remote: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(1024+i)),
			Inode:  uint32(port)<<8 + uint32(i) + uint32(what)<<24,
			Info:   sockdiag.TCPInfo{Size: 232, BytesReceived: 100, SegsIn: 3, DataSegsIn: 1, LastDataRecv: time.Second, LastDataSent: time.Second},
		}
		switch what {
		case resting:
			s.Info.DataSegsOut, s.Info.BytesAcked, s.Info.BytesSent = 1, 100, 100
			s.Info.LastDataRecv = 2 * time.Second
		case queued:
			s.Inode = 0
		case ended:
			s.State, s.Inode, s.HasInfo = sockdiag.TimeWait, 0, false
		}
		out = append(out, s)
	}
	return out
}

// world is a machine that a test writes: a folder in the form of /proc, and a
// kernel for each network namespace. It takes no privileges, and its clock goes
// when the test says.
type world struct {
	*Scheduler
	t       *testing.T
	dir     string
	mu      sync.Mutex
	now     time.Time
	kernels map[uint64]*kernel // by namespace
	reading evidence.Reading   // of every acceptor
	tasks   tasks
}

// serverPID is the process of the first namespace, ours the tests'.
const serverPID = 42

// newWorld is a machine with one namespace, of process 42, whose socket with
// inode 1 listens on port 8080.
func newWorld(t *testing.T, k *kernel, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), kernels: make(map[uint64]*kernel)}
	require.NoError(t, os.Symlink("self-is-elsewhere", filepath.Join(w.dir, "self")))
	w.process(serverPID, "home", 1)
	w.process(os.Getpid(), "home")
	w.kernels[w.netns(serverPID)] = k
	opt := Defaults()
	opt.Ports, opt.Now = []uint16{8080}, w.clock
	opt.Limits = watchlist.Overrides{MaxConnections: watchlist.ByHand(new(20), "flag"), AcceptCount: watchlist.ByHand(new(5), "flag"), MaxThreads: watchlist.ByHand(new(10), "flag")}
	if change != nil {
		change(&opt)
	}
	proc := hostfs.At(t, w.dir)
	src := Sources{Sources: watchlist.Sources{Mount: w.dir, Proc: proc, Owners: owner.New(proc), Open: w.open}, Evidence: func(hostproc.ProcessKey, reader.Listener) reader.AcceptorReader { return w }}
	var err error
	w.Scheduler, err = New(src, opt)
	require.NoError(t, err)
	m, err := metronome.New(time.Hour)
	require.NoError(t, err)
	t.Cleanup(m.Stop)
	w.tasks = tasks{
		scheduler: w.Scheduler, metronome: m, walks: make(paces[uint64]),
		reads: make(paces[hostproc.ProcessKey]), judges: make(paces[model.ListenerID]),
	}
	t.Cleanup(func() { require.NoError(t, w.Scheduler.Close()) })
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Read and Close make it the reader of every acceptor.
func (w *world) Read() evidence.Reading {
	out := w.reading
	out.Began, out.Ended = w.clock(), w.clock().Add(time.Millisecond)
	return out
}

// Close is the reader's.
func (w *world) Close() {}

func (w *world) open(_ *namespace.Shared, pid int) (namespace.Opened, error) {
	if pid == 0 {
		pid = os.Getpid()
	}
	id := w.netns(pid)
	return namespace.Opened{Kernel: w.kernels[id], ID: netns.ID(id)}, nil
}

// process writes a process of a namespace that holds these sockets.
func (w *world) process(pid int, space string, inodes ...uint32) {
	w.t.Helper()
	dir := filepath.Join(w.dir, fmt.Sprint(pid))
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("stat", fmt.Sprintf("%d (java) S 1 1 1 0 -1 4194560 1 0 5 0 100 50 0 0 20 0 22 0 100 1000 100 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n", pid))
	uid := os.Getuid()
	write("status", fmt.Sprintf("Name:\tjava\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nGid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nFDSize:\t64\nGroups:\t\nThreads:\t22\n", uid))
	write("cmdline", "java\x00-jar\x00app.jar\x00")
	write("limits", "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            10000                20000                files     \n")
	write("task/"+fmt.Sprint(pid)+"/comm", "java\n")
	write("task/"+fmt.Sprint(pid)+"/schedstat", "1000000 2000000 3\n")
	w.holds(pid, inodes...)
	for _, name := range []string{"ns/net", "net/tcp"} { // one file a namespace
		shared := filepath.Join(w.dir, "namespace-"+space+"-"+filepath.Base(name))
		if _, err := os.Stat(shared); err != nil {
			require.NoError(w.t, os.WriteFile(shared, nil, 0o600))
		}
		require.NoError(w.t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(w.t, os.Link(shared, filepath.Join(dir, name)))
	}
}

// holds gives a process these sockets, and no others.
func (w *world) holds(pid int, inodes ...uint32) {
	w.t.Helper()
	dir := filepath.Join(w.dir, fmt.Sprint(pid), "fd")
	require.NoError(w.t, os.RemoveAll(dir))
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	for fd, inode := range inodes {
		require.NoError(w.t, os.Symlink(fmt.Sprintf("socket:[%d]", inode), filepath.Join(dir, fmt.Sprint(fd))))
	}
}

func (w *world) exit(pid int) {
	require.NoError(w.t, os.RemoveAll(filepath.Join(w.dir, fmt.Sprint(pid))))
}

// netns is the number of a process's namespace.
func (w *world) netns(pid int) uint64 {
	info, err := os.Stat(filepath.Join(w.dir, fmt.Sprint(pid), "ns/net"))
	require.NoError(w.t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// second is what the clocks do in a second, one step after the other.
func (w *world) second() *model.Snapshot {
	w.t.Helper()
	w.looping.Store(true)
	for range 10 {
		w.pass(100 * time.Millisecond)
		w.Sample()
		w.tasks.read()
		for w.tasks.readDue() == 0 { // until none is due
		}
	}
	w.tasks.listAgain(context.Background())
	w.publish(false)
	return w.Snapshot()
}

// scanned is the first snapshot.
func (w *world) scanned() *model.Snapshot {
	w.t.Helper()
	require.NoError(w.t, w.Scan(context.Background()))
	return w.Snapshot()
}

// only is a snapshot's one listener.
func (w *world) only(s *model.Snapshot) *model.Listener {
	w.t.Helper()
	require.Len(w.t, s.Listeners, 1)
	return &s.Listeners[0]
}

// dropped are the packets that have their cause.
func dropped(t model.Totals) (n uint64) {
	for _, packets := range t.Dropped {
		n += packets
	}
	return n
}
