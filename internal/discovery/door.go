package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/netns"
)

// Why an Actuator is not asked.
var (
	errName    = errors.New("actuator: the name in its URL is not resolved in the process's namespace: give an address, or localhost")
	errSecret  = errors.New("actuator: its user and password go to a named process only: give its pid, or a target with a pid")
	errPort    = errors.New("actuator: the process does not listen there")
	errAnother = errors.New("actuator: another process listens there, or its owner cannot be seen")
)

// door leads to one process's Actuator: in its network namespace, to literal
// addresses, and with credentials only to a socket that is the process's own.
type door struct {
	proc      hostproc.FS
	pid       int    // 0: of a process that cannot be seen
	namespace string // path
	url       *url.URL
	// discovered: the URL stands in the process's own configuration.
	discovered bool
	local      bool             // the namespace is the caller's
	sockets    []netip.AddrPort // of the process, on the URL's port
	// guarded: what is sent is for this process's eyes only.
	guarded bool
	err     error // why it cannot be opened
}

// doorOf works out where an Actuator is asked. A namespace that may not be
// opened is the caller's own: the process's listeners were found there, and no
// other could have been entered.
func (d *Discoverer) doorOf(pid int, a Actuator, connectors match.Connectors) *door {
	out := &door{proc: d.proc, pid: pid, namespace: callersNamespace, local: true, discovered: a.discovered}
	if pid != 0 {
		theirs := d.proc.Path(pid, "ns", "net")
		if info, err := os.Stat(theirs); err == nil {
			here, err := os.Stat(callersNamespace)
			out.local = err == nil && os.SameFile(here, info)
			out.namespace = theirs
		} else if !errors.Is(err, fs.ErrPermission) {
			out.err = err
			return out
		}
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		out.err = errURL
		return out
	}
	out.guarded = u.User != nil && pid != 0
	if u.User != nil && !out.local && a.PID == 0 {
		out.err = errSecret
		return out
	}
	out.url, out.sockets = u, connectors.OnPort(portIn(u))
	out.guarded = out.guarded || a.discovered && len(out.sockets) == 0 // whose is what listens there?
	return out
}

func portIn(u *url.URL) uint16 { return match.PortOf(cmp.Or(u.Port(), standardPort(u.Scheme))) }

// addresses are the literal addresses to try. Of a URL that was found in the
// process's own configuration only the port counts: it is asked where it
// listens, and nowhere else.
func (d *door) addresses(ctx context.Context) ([]netip.Addr, error) {
	if d.discovered {
		sockets := d.sockets
		if len(sockets) == 0 {
			var err error
			if sockets, err = d.processSockets(portIn(d.url)); err != nil {
				return nil, err
			}
		}
		return []netip.Addr{reachable(sockets[0].Addr())}, nil
	}
	if address, err := netip.ParseAddr(d.url.Hostname()); err == nil {
		return []netip.Addr{reachable(address)}, nil
	}
	if d.url.Hostname() == "localhost" {
		return d.loopbacks(), nil
	}
	if !d.local {
		return nil, errName
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", d.url.Hostname())
	if err != nil {
		return nil, errName
	}
	return found, nil
}

// loopbacks are what localhost means (RFC 6761), whatever a hosts file says: of
// the two addresses the one where the process listens, else both.
func (d *door) loopbacks() []netip.Addr {
	both := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	var out []netip.Addr
	for _, loopback := range both {
		if listensOn(d.sockets, loopback) {
			out = append(out, loopback)
		}
	}
	if len(out) == 0 { // on a port that is not watched
		return both
	}
	return out
}

// reachable is an address at which a wildcard listener is reached.
func reachable(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.IsUnspecified() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return a
}

// listensOn says that one of a process's sockets takes connections to an address.
func listensOn(sockets []netip.AddrPort, address netip.Addr) bool {
	for _, at := range sockets {
		a := at.Addr().Unmap()
		if a == address || a.IsUnspecified() && (a.Is6() || address.Is4()) {
			return true
		}
	}
	return false
}

// dial connects inside the namespace, in its thread: with literal addresses and
// one family at a time nothing is dialled by goroutines, which run outside.
func (d *door) dial(ctx context.Context) (net.Conn, error) {
	if d.err != nil {
		return nil, d.err
	}
	addresses, err := d.addresses(ctx)
	for _, address := range addresses {
		var conn net.Conn
		if conn, err = d.dialOne(ctx, netip.AddrPortFrom(address.Unmap(), portIn(d.url))); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (d *door) dialOne(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: actuatorTimeout, FallbackDelay: -time.Second}
	var conn net.Conn
	err := netns.Do(d.namespace, func() (err error) {
		if conn, err = dialer.DialContext(ctx, "tcp", address.String()); err == nil && d.guarded {
			err = d.owned(address)
		}
		return err
	})
	if err != nil && conn != nil {
		_ = conn.Close() // nothing was sent
	}
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return conn, nil
}

func standardPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}
