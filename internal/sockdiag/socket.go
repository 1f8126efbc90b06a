package sockdiag

import (
	"encoding/binary"
	"net/netip"
)

// Socket is a server's end of a connection, or of one that begins or ends.
type Socket struct {
	Family uint8
	State  State
	Local  netip.AddrPort // as the kernel has it, maybe v4-mapped
	Remote netip.AddrPort // likewise
	// Interface is the index of the device the socket is bound to, 0 for none.
	Interface uint32
	// Inode is 0 for a connection that nobody has accepted, and for SYN_RECV,
	// TIME_WAIT and orphaned sockets.
	Inode uint32
	UID   uint32
	// Cookie is unique per socket since boot (sock_gen_cookie); see ConnectionID.
	Cookie uint64
	// Cgroup is the cgroup (v2) of the process that made the socket, by the inode
	// of its folder (INET_DIAG_CGROUP_ID, Linux 5.9); 0 where the kernel does not
	// report it, and for SYN_RECV and TIME_WAIT.
	Cgroup uint64
	// Expires is when the socket's timer fires, in milliseconds from the reading:
	// one in TIME_WAIT ends then (idiag_expires).
	Expires uint32
	RecvQ   uint32 // bytes received and not read; a FIN counts as one
	SendQ   uint32 // bytes sent and not acknowledged
	// Info is the kernel's tcp_info. SYN_RECV and TIME_WAIT have none, nor has a
	// FIN_WAIT2 that its process has closed: the kernel keeps that as a kind of
	// TIME_WAIT (tw_substate).
	Info    TCPInfo
	HasInfo bool
}

// LocalAddress is Local for people, v4-mapped ones unmapped.
func (s *Socket) LocalAddress() netip.AddrPort { return unmapped(s.Local) }

// RemoteAddress is Remote for people, v4-mapped ones unmapped.
func (s *Socket) RemoteAddress() netip.AddrPort { return unmapped(s.Remote) }

func (s *Socket) decode(body []byte) error {
	var m diagMsg
	if err := m.decode(body); err != nil {
		return err
	}
	// Field by field: a literal would be built aside and copied, a
	// fifth of the time that decoding takes.
	s.Family, s.State = m.family, m.state
	s.Local, s.Remote = m.local, m.remote
	s.Interface, s.Inode, s.UID = m.iface, m.inode, m.uid
	s.Cookie, s.Cgroup = m.cookie, 0
	s.Expires, s.RecvQ, s.SendQ = m.expires, m.rqueue, m.wqueue
	s.Info, s.HasInfo = TCPInfo{}, false
	for b := m.attrs; len(b) > 0; {
		typ, value, rest, err := nextAttr(b)
		if err != nil {
			return err
		}
		switch {
		case typ == diagInfo:
			s.HasInfo = s.Info.decode(value)
		case typ == diagCgroup && len(value) >= 8:
			s.Cgroup = binary.NativeEndian.Uint64(value)
		}
		b = rest
	}
	return nil
}
