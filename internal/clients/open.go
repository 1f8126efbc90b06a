package clients

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// NewOpener opens taps on this machine, whose processes proc shows at mount.
func NewOpener(mount string, proc hostproc.FS) Opener {
	return func(w Where) (Tap, error) {
		pid, err := within(w.NetNS, w.PID)
		if err != nil {
			return nil, err
		}
		ns, err := netns.Open(netns.Path(mount, pid))
		if err != nil {
			return nil, err
		}
		if uint64(ns.ID()) != w.NetNS {
			return nil, errors.Join(fmt.Errorf("clients: process %d has left network namespace %d", pid, w.NetNS), ns.Close())
		}
		t := &namespaceTap{ns: ns}
		if t.listen, err = netstat.OpenListenCounters(proc, pid); err == nil {
			t.counters, err = netstat.OpenHandshakeCounters(proc, pid)
		}
		if err == nil {
			err = t.open(w)
		}
		if err != nil {
			return nil, errors.Join(err, t.release())
		}
		return t, nil
	}
}

// within is a process in the namespace: this one, if it is there itself.
func within(id uint64, pid int) (int, error) {
	here, err := netns.Current()
	switch {
	case err != nil:
		return 0, err
	case uint64(here) == id:
		return os.Getpid(), nil
	case pid == 0:
		return 0, fmt.Errorf("clients: no process is known in network namespace %d", id)
	}
	return pid, nil
}

// namespaceTap is a tap with what it asks about its namespace.
type namespaceTap struct {
	*handshake.Tap
	ns       *netns.Namespace
	listen   *netstat.ListenCountersFile
	counters *netstat.HandshakeCountersFile
	sockets  *sockdiag.Conn // of socket, nil before it is needed
}

func (t *namespaceTap) open(w Where) error {
	return t.ns.Do(func() (err error) {
		t.Tap, err = handshake.Open(handshake.TapOptions{
			Options: handshake.Options{SynAckRetries: w.SynAckRetries, Socket: t.socket}, Ports: w.Ports,
			Counters: t.count, Cookies: t.cookies, Addresses: t.addresses, Inside: t.inside(w), Calm: w.Calm,
		})
		return err
	})
}

// inside is nil where a large ring from the start costs little.
func (t *namespaceTap) inside(w Where) func(func() error) error {
	if w.Many {
		return t.ns.Do
	}
	return nil
}

// cookies are the SYNs that were answered with one (tcp_syn_flood_action).
func (t *namespaceTap) cookies() (uint64, error) {
	var c netstat.ListenCounters
	err := t.listen.Read(&c)
	return c.ReqQFullDoCookies, err
}

func (t *namespaceTap) count() (handshake.Counters, error) {
	var c netstat.HandshakeCounters
	err := t.counters.Read(&c)
	return handshake.Counters(c), err
}

// socket asks the kernel what it has for a client. Few are asked for, so the netlink
// socket is opened for the first.
func (t *namespaceTap) socket(server, client netip.AddrPort, device uint32) handshake.Socket {
	if t.sockets == nil {
		if err := t.ns.Do(func() (err error) {
			t.sockets, err = sockdiag.Dial()
			return err
		}); err != nil {
			return handshake.SocketUnknown
		}
	}
	state, err := t.sockets.Between(server, client, device)
	met := handshake.Connection
	switch {
	case err != nil:
		return handshake.SocketUnknown
	case state == sockdiag.SynRecv:
		met = handshake.HalfOpenSocket
	case state == sockdiag.Listen:
		met = handshake.OnlyListener
	case state == 0:
		met = handshake.NoSocket
	}
	if met != handshake.Connection && client.Addr().IsLinkLocalUnicast() {
		return handshake.SocketUnknown // sockets of such an address are bound to their device
	}
	return met
}

func (t *namespaceTap) addresses() (out []netip.Prefix, err error) {
	err = t.ns.Do(func() (err error) {
		out, err = netns.LocalAddresses()
		return err
	})
	return out, err
}

// Close ends the tap and lets the namespace go.
func (t *namespaceTap) Close() error { return errors.Join(t.Tap.Close(), t.release()) }

func (t *namespaceTap) release() error {
	if t.sockets != nil {
		_ = t.sockets.Close()
	}
	var errs []error
	if t.listen != nil {
		errs = append(errs, t.listen.Close())
	}
	if t.counters != nil {
		errs = append(errs, t.counters.Close())
	}
	return errors.Join(append(errs, t.ns.Close())...)
}
