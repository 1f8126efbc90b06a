package sockdiag

import (
	"encoding/binary"
	"net/netip"
	"strconv"
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

// Refused reports whether a socket that the kernel has freed was a client's that a reset has refused: segments came and went,
// and none acknowledged its SYN. Who has asked by a connect that blocks has its port cleared by then (tcp_disconnect), and
// an ICMP message leaves nothing that shows it.
func (s *Socket) Refused() bool {
	i := &s.Info
	return s.State == Close && s.Remote.Port() != 0 && s.HasInfo && i.HasBytes() &&
		i.SegsOut > 0 && i.SegsIn > 0 && i.BytesAcked == 0 && i.BytesReceived == 0 && i.RTT == 0
}

// State is a socket's TCP state with the kernel's numbers (net/tcp_states.h).
type State uint8

// The states. The kernel's TCP_NEW_SYN_RECV (12), a request socket that is not
// yet a connection, is asked for and reported as SynRecv.
const (
	Established State = iota + 1
	SynSent
	SynRecv
	FinWait1
	FinWait2
	TimeWait
	Close
	CloseWait
	LastAck
	Listen
	Closing
)

// String is the kernel's name without its TCP_ prefix.
func (s State) String() string {
	names := [...]string{
		Established: "ESTABLISHED", SynSent: "SYN_SENT", SynRecv: "SYN_RECV",
		FinWait1: "FIN_WAIT1", FinWait2: "FIN_WAIT2", TimeWait: "TIME_WAIT",
		Close: "CLOSE", CloseWait: "CLOSE_WAIT", LastAck: "LAST_ACK",
		Listen: "LISTEN", Closing: "CLOSING",
	}
	if s == 0 || int(s) >= len(names) {
		return "STATE_" + strconv.Itoa(int(s))
	}
	return names[s]
}

// mask is the state's bit in idiag_states.
func (s State) mask() uint32 { return 1 << s }

// States is a set of states to ask for (idiag_states).
type States uint32

// Connected are the states of a server's end of a connection. With
// TCP_SYN_RECV the kernel also selects the request sockets (inet_diag adds
// TCPF_NEW_SYN_RECV); CLOSE and LISTEN are left out, they have no peer.
func Connected() States {
	return States(Established.mask() | SynRecv.mask() | FinWait1.mask() | FinWait2.mask() |
		TimeWait.mask() | CloseWait.mask() | LastAck.mask() | Closing.mask())
}

// Without leaves a state out: the kernel then passes over its sockets without
// looking at their ports.
func (s States) Without(left State) States { return s &^ States(left.mask()) }

// With takes a state along.
func (s States) With(more State) States { return s | States(more.mask()) }
