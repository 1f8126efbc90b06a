package downstream

import (
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Identify gives the peers of a reading the names and pools that the process's
// configuration has for them: by their address, or, where only DNS knows that, by
// a port that a single peer has. A peer that two entries fit gets neither.
func Identify(d *model.Downstream, backends []model.Backend) {
	for i := range d.Peers {
		p := &d.Peers[i]
		fits := func(b model.Backend) bool { return isAt(b, p.Address) }
		if !slices.ContainsFunc(backends, fits) {
			fits = func(b model.Backend) bool {
				return slices.Contains(b.Ports, p.Address.Port()) && onlyOne(d, p.Address.Port())
			}
			p.ByPort = true
		}
		if b := single(backends, fits); b != nil {
			p.Name, p.Pool = b.Name, poolOf(p, b)
		} else {
			p.ByPort = false
		}
	}
	d.Unconnected = unconnected(d, backends)
}

// unconnected are the backends with a pool that no connection leads to, where all
// connections are known: by address and, as DNS is not asked, by port.
func unconnected(d *model.Downstream, backends []model.Backend) (out []model.Backend) {
	if d.ByUser || d.Partial || d.Others != nil {
		return nil
	}
	for _, b := range backends {
		known := len(b.At)+len(b.Ports) > 0
		if b.Pool != nil && known && !slices.ContainsFunc(d.Peers, func(p model.Peer) bool {
			return isAt(b, p.Address) || slices.Contains(b.Ports, p.Address.Port())
		}) {
			out = append(out, b)
		}
	}
	return out
}

func isAt(b model.Backend, peer netip.AddrPort) bool {
	return slices.Contains(b.At, netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()))
}

// onlyOne says that a single peer has a port, where all of them are known to
// be the process's and none is missing.
func onlyOne(d *model.Downstream, port uint16) bool {
	n := 0
	for i := range d.Peers {
		if d.Peers[i].Address.Port() == port {
			n++
		}
	}
	return n == 1 && d.Others == nil && !d.Partial && !d.ByUser
}

func single(backends []model.Backend, fits func(model.Backend) bool) *model.Backend {
	i := slices.IndexFunc(backends, fits)
	if i < 0 || slices.ContainsFunc(backends[i+1:], fits) {
		return nil
	}
	return &backends[i]
}

// poolOf is the pool that bounds a peer's connections. It is not the one of the
// configuration, or not that alone, if something may set another size, or if
// there are more of them than that: one more may be, since HikariCP closes a
// retired connection beside the pool (HikariPool.closeConnection).
func poolOf(p *model.Peer, b *model.Backend) *model.Pool {
	if b.Pool == nil || b.Pool.Size.Uncertain || p.Connections > b.Pool.Size.Value+1 {
		return nil
	}
	return b.Pool
}
