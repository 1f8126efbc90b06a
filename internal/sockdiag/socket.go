package sockdiag

import "net/netip"

// Socket is a server's end of a connection, or of one that begins or ends.
type Socket struct {
	Family uint8
	State  State
	Local  netip.AddrPort // as the kernel has it, maybe v4-mapped
	Remote netip.AddrPort // likewise
	// Interface is the index of the device the socket is bound to, 0 for none.
	Interface uint32
	// Inode is 0 for a connection that nobody has accepted, and for SYN_RECV,
	// TIME_WAIT and orphans.
	Inode uint32
	UID   uint32
	RecvQ uint32 // bytes received and not read; a FIN counts as one
	SendQ uint32 // bytes sent and not acknowledged
	// Info is the kernel's tcp_info; SYN_RECV and TIME_WAIT have none.
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
	*s = Socket{
		Family: m.family, State: m.state, Local: m.local, Remote: m.remote, Interface: m.iface,
		Inode: m.inode, UID: m.uid, RecvQ: m.rqueue, SendQ: m.wqueue,
	}
	for b := m.attrs; len(b) > 0; {
		typ, value, rest, err := nextAttr(b)
		if err != nil {
			return err
		}
		if typ == diagInfo {
			s.HasInfo = s.Info.decode(value)
		}
		b = rest
	}
	return nil
}
