package clients

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
	"github.com/tcpdiag/tcpdiag/internal/handshake/tap"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// NewOpener opens taps on this machine, whose processes proc shows at mount.
func NewOpener(mount string, proc hostproc.FS) Opener {
	shared, dumps := room.NewShared(), new(atomic.Int32)
	return func(w Where) (Tap, error) {
		ns, err := enter(mount, w)
		if err != nil {
			return nil, err
		}
		t := &namespaceTap{ns: ns, proc: proc, shared: shared, dumps: dumps}
		t.listened.Store(&w.Listened)
		if err := t.open(w); err != nil {
			return nil, errors.Join(err, t.release())
		}
		return t, nil
	}
}

// enter opens the namespace by this process, if it is there itself, or by the first that is. Who has a listener in a
// namespace may have left it: an unprivileged process for one of its own.
func enter(mount string, w Where) (*netns.Namespace, error) {
	here, err := netns.Current()
	if err != nil {
		return nil, err
	}
	pids := w.PIDs
	if uint64(here) == w.NetNS {
		pids = []int{os.Getpid()}
	}
	first := fmt.Errorf("clients: no process is known in network namespace %d", w.NetNS)
	for i, pid := range pids {
		ns, err := netns.Open(netns.Path(mount, pid))
		if err == nil && uint64(ns.ID()) == w.NetNS {
			return ns, nil
		}
		if err == nil {
			err = errors.Join(fmt.Errorf("clients: process %d has left network namespace %d", pid, w.NetNS), ns.Close())
		}
		if i == 0 {
			first = err
		}
	}
	return nil, first
}

// namespaceTap is a tap with what it asks about its namespace.
type namespaceTap struct {
	*tap.Tap
	ns       *netns.Namespace
	proc     hostproc.FS
	shared   *room.Shared
	listen   *netstat.ListenCountersFile
	counters *netstat.HandshakeCountersFile
	listened atomic.Pointer[[]netip.AddrPort] // of what is watched

	asking  sync.Mutex
	sockets *sockdiag.Conn // nil before it is needed
	next    time.Time      // when the listeners may be asked for again
	costly  bool           // the latest dump of them was
	dumps   *atomic.Int32  // namespaces of which that is so
	alone   bool           // as last known
	closed  bool
}

func (t *namespaceTap) open(w Where) error {
	return t.ns.Do(func() (err error) { // from inside: a process may leave at any moment
		if t.listen, err = netstat.OpenListenCounters(t.proc, hostproc.CallingThread); err != nil {
			return err
		}
		if t.counters, err = netstat.OpenHandshakeCounters(t.proc, hostproc.CallingThread); err != nil {
			return err
		}
		t.Tap, err = tap.Open(tap.Options{
			Options: handshake.Options{SynAckRetries: w.SynAckRetries, Shared: t.shared, Socket: t.socket, Judged: w.Judged}, Ports: w.Ports,
			Counters: t.count, Trouble: t.trouble, Dropped: t.dropped, Addresses: t.addresses, Inside: t.inside(w), Calm: w.Calm,
		})
		return err
	})
}

// inside runs a function in the namespace: for a tap that begins with a small ring and may need a large one. It is nil
// where a large one from the start costs little.
func (t *namespaceTap) inside(w Where) func(func() error) error {
	if w.Many {
		return t.ns.Do
	}
	return nil
}

func (t *namespaceTap) trouble() (tap.Trouble, error) {
	var c netstat.ListenCounters
	err := t.listen.Read(&c)
	return tap.Trouble{Cookies: c.ReqQFullDoCookies, Drops: c.ListenDrops}, err
}

// dropped sums the listeners of a port.
func (t *namespaceTap) dropped() (map[uint16]uint64, error) {
	out := make(map[uint16]uint64)
	err := t.listening(func(l *sockdiag.Listener) error {
		out[l.Local.Port()] += uint64(l.Drops)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (t *namespaceTap) count() (kernel.Counters, error) {
	var c netstat.HandshakeCounters
	err := t.counters.Read(&c)
	return kernel.Counters(c), err
}

// socket asks the kernel what it has for a client. Few are asked for, so the netlink
// socket is opened for the first.
func (t *namespaceTap) socket(server, client netip.AddrPort, device uint32) kernel.Found {
	t.asking.Lock()
	defer t.asking.Unlock()
	if !t.dial() {
		return kernel.Found{}
	}
	met, err := t.sockets.Between(server, client, device)
	if err != nil {
		return kernel.Found{}
	}
	f := found(&met)
	if f.Socket != kernel.Connection && client.Addr().IsLinkLocalUnicast() {
		return kernel.Found{} // sockets of such an address are bound to their device
	}
	if device == packet.Loopback && (f.Received == 0 || met.State != sockdiag.Established) { // it may have left, and what it sent before is not taken
		if end, err := t.sockets.Between(client, server, device); err == nil {
			f.Client = clientEnd(&end)
		}
	}
	return f
}

// clientEnd is what a client's own socket says of it. One that its process has closed has no inode any more (sock_orphan).
func clientEnd(end *sockdiag.Socket) kernel.Client {
	switch attached := end.Inode != 0; {
	case attached && end.State == sockdiag.Established:
		return kernel.ClientThere
	case attached && (end.State == sockdiag.FinWait1 || end.State == sockdiag.FinWait2):
		return kernel.ClientShut
	case !attached && end.State == sockdiag.FinWait1:
		return kernel.ClientLeft
	}
	return kernel.ClientUnknown
}

// Alone asks for all listeners: that never walks the table of connections.
func (t *namespaceTap) Alone() bool {
	var ports []uint16
	if err := t.listening(func(l *sockdiag.Listener) error {
		ports = append(ports, l.Local.Port())
		return nil
	}); err != nil {
		return errors.Is(err, errRests) && t.alone
	}
	t.alone = !slices.ContainsFunc(ports, func(port uint16) bool { return !t.Follows(port) })
	return t.alone
}

const (
	// expensive are dumps of some ten thousand listeners, of one namespace or of many with costly ones; listenRest is how much longer than
	// they took the next one waits: a snapshot of all namespaces waits for them.
	expensive  = 5 * time.Millisecond
	costly     = expensive / 50
	listenRest = 20
)

var errRests = errors.New("clients: there are too many listeners to be asked for them again")

func (t *namespaceTap) listening(fn func(*sockdiag.Listener) error) error {
	t.asking.Lock()
	defer t.asking.Unlock()
	if !t.dial() {
		return errNoSockets
	}
	if time.Now().Before(t.next) {
		return errRests
	}
	cost, err := cputime.Of(func() error { return t.sockets.Listeners(fn) })
	t.spent(time.Now(), cost)
	return err
}

// spent has the next dump wait where those of all namespaces together are expensive.
func (t *namespaceTap) spent(now time.Time, cost time.Duration) {
	t.setCostly(cost >= costly)
	if all := cost * time.Duration(t.dumps.Load()); all >= expensive {
		t.next = now.Add(listenRest * all)
	}
}

func (t *namespaceTap) setCostly(is bool) {
	switch {
	case is && !t.costly:
		t.dumps.Add(1)
	case t.costly && !is:
		t.dumps.Add(-1)
	}
	t.costly = is
}

var errNoSockets = errors.New("clients: the kernel cannot be asked for sockets")

// found is what a socket says of its client.
func found(s *sockdiag.Socket) (f kernel.Found) {
	switch s.State {
	case 0:
		return kernel.Found{Socket: kernel.NoSocket}
	case sockdiag.Listen:
		return kernel.Found{Socket: kernel.OnlyListener}
	case sockdiag.SynRecv:
		return kernel.Found{Socket: kernel.HalfOpenSocket}
	case sockdiag.TimeWait:
		return kernel.Found{}
	}
	f.Socket = kernel.Connection
	if f.HasInfo = s.HasInfo && s.Info.HasBytesSent(); !f.HasInfo {
		return f
	}
	f.Sent, f.Received, f.Quiet = s.Info.BytesSent, s.Info.BytesReceived, s.Info.LastDataSent
	f.ByBareACK, f.Segments = byBareACK(s), s.Info.SegsIn
	if s.State == sockdiag.Established && s.RecvQ == 0 {
		f.Unheard = s.Info.LastAckRecv
	}
	if s.State != sockdiag.Established && f.Received > 0 {
		f.Received-- // the client's FIN counts as a byte (tcp_rcv_nxt_update)
	}
	return f
}

// byBareACK reports whether a segment without data made the socket: what counts are the SYN (tcp_create_openreq_child),
// the one that made it (tcp_child_process) and those since. As long as the server has sent nothing there is nothing
// else that the client acknowledges, and its FIN has not come.
func byBareACK(s *sockdiag.Socket) bool {
	i := &s.Info
	return s.State == sockdiag.Established && i.HasDataSegs() && i.BytesSent == 0 && i.SegsIn > 1+i.DataSegsIn
}

func (t *namespaceTap) dial() bool {
	if t.closed {
		return false
	}
	if t.sockets == nil {
		return t.ns.Do(func() (err error) {
			t.sockets, err = sockdiag.Dial()
			return err
		}) == nil
	}
	return true
}

// SetListened implements Tap.
func (t *namespaceTap) SetListened(at []netip.AddrPort) {
	t.listened.Store(&at)
	t.Tap.SetListened(at)
}

// addresses are the namespace's own, and those of watched listeners that are not there (any more): whoever asks
// them gets no answer, unless his packets are passed on to another machine that has them.
func (t *namespaceTap) addresses() (out []netip.Prefix, err error) {
	var forwards4, forwards6 bool
	if err = t.ns.Do(func() (err error) {
		forwards4, forwards6 = netstat.Forwards(t.proc)
		out, err = netns.LocalAddresses()
		return err
	}); err != nil {
		return out, err
	}
	for _, l := range *t.listened.Load() {
		a := l.Addr()
		if forwards := a.Is4() && forwards4 || a.Is6() && forwards6; !forwards && a.IsGlobalUnicast() {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out, nil
}

// Close ends the tap and lets the namespace go.
func (t *namespaceTap) Close() error { return errors.Join(t.Tap.Close(), t.release()) }

func (t *namespaceTap) release() error {
	t.asking.Lock()
	if t.closed = true; t.sockets != nil {
		_ = t.sockets.Close()
	}
	t.setCostly(false)
	t.asking.Unlock()
	var errs []error
	if t.listen != nil {
		errs = append(errs, t.listen.Close())
	}
	if t.counters != nil {
		errs = append(errs, t.counters.Close())
	}
	return errors.Join(append(errs, t.ns.Close())...)
}
