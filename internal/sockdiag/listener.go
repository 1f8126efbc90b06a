package sockdiag

import (
	"encoding/binary"
	"net/netip"
)

// memInfoDrops is the offset of SK_MEMINFO_DROPS, the ninth u32. Kernels
// before 4.6 end before it.
const memInfoDrops = 8 * 4

// ListenerID finds a LISTEN socket by an exact request.
type ListenerID struct {
	Family uint8 // FamilyIPv4 or FamilyIPv6
	// Local is the bound address as the kernel has it: a v4-mapped one stays
	// mapped, or the exact request would miss it.
	Local     netip.AddrPort
	Interface uint32 // index of the device the socket is bound to, 0 for any
}

// Address is the bound address for people, v4-mapped ones unmapped.
func (id ListenerID) Address() netip.AddrPort { return unmapped(id.Local) }

// Listener is a LISTEN socket.
type Listener struct {
	ListenerID
	Inode  uint32 // socket inode, as in /proc/PID/fd/N -> socket:[inode]
	UID    uint32 // of the process that created it
	Cookie uint64 // unique per socket since boot (sock_gen_cookie)
	RecvQ  uint32 // sk_ack_backlog: connections waiting to be accepted
	SendQ  uint32 // sk_max_ack_backlog: the backlog after the clamp to somaxconn
	Drops  uint32 // SK_MEMINFO_DROPS since the socket was created; wraps
	// HasDrops is false on kernels that do not report Drops.
	HasDrops bool
	// V6Only is IPV6_V6ONLY: a wildcard [::] that does not take IPv4. The kernel
	// sets it for every other IPv6 address (inet6_bind), but v4-mapped ones.
	V6Only bool
	// Cgroup is the cgroup of the process that made the socket; see Socket.
	Cgroup uint64
	// Freebind and Transparent are IP_FREEBIND and IP_TRANSPARENT: it may be bound to an address that is not there, and
	// may be given what goes to others (TPROXY). HasOptions is false on kernels that do not report them.
	Freebind, Transparent, HasOptions bool
}

// The bits of the first byte of struct inet_diag_sockopt.
const (
	optFreebind    = 1 << 2
	optTransparent = 1 << 5
)

func (l *Listener) decode(body []byte) error {
	var m diagMsg
	if err := m.decode(body); err != nil {
		return err
	}
	*l = Listener{
		ListenerID: ListenerID{Family: m.family, Local: m.local, Interface: m.iface},
		Inode:      m.inode, UID: m.uid, Cookie: m.cookie, RecvQ: m.rqueue, SendQ: m.wqueue,
	}
	for b := m.attrs; len(b) > 0; {
		typ, value, rest, err := nextAttr(b)
		if err != nil {
			return err
		}
		l.attr(typ, value)
		b = rest
	}
	if m.state != Listen {
		return errState
	}
	return nil
}

func (l *Listener) attr(typ uint16, value []byte) {
	switch {
	case typ == diagSKMemInfo && len(value) >= memInfoDrops+4:
		l.Drops, l.HasDrops = binary.NativeEndian.Uint32(value[memInfoDrops:]), true
	case typ == diagSKV6Only && len(value) >= 1:
		l.V6Only = value[0] != 0
	case typ == diagCgroup && len(value) >= 8:
		l.Cgroup = binary.NativeEndian.Uint64(value)
	case typ == diagSockopt && len(value) >= 1:
		l.HasOptions, l.Freebind, l.Transparent = true, value[0]&optFreebind != 0, value[0]&optTransparent != 0
	}
}
