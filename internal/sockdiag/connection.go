package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
)

// ConnectionID finds one connection by an exact request, at a cost that does not
// grow with the number of sockets. Socket.ID makes it.
type ConnectionID struct {
	Family        uint8
	Local, Remote netip.AddrPort // as the kernel has them, maybe v4-mapped
	Interface     uint32         // index of the device the socket is bound to, 0 for none
	// Cookie is the socket's number since boot (sock_gen_cookie). The kernel
	// keeps it from the half-open connection (ir_cookie) to TIME_WAIT
	// (tw_cookie), and compares it: without one the listener would answer where
	// the connection has ended.
	Cookie uint64
}

// ID finds the socket again.
func (s *Socket) ID() ConnectionID {
	return ConnectionID{Family: s.Family, Local: s.Local, Remote: s.Remote, Interface: s.Interface, Cookie: s.Cookie}
}

func (id *ConnectionID) valid() bool {
	local, remote := id.Local.Addr(), id.Remote.Addr()
	if id.Cookie == 0 || local.Zone() != "" || remote.Zone() != "" {
		return false
	}
	switch id.Family {
	case FamilyIPv4:
		return local.Is4() && remote.Is4()
	case FamilyIPv6:
		return local.Is6() && remote.Is6()
	}
	return false
}

// errNoConnection is made once: of ten thousand connections asked for thousands
// may have ended.
var errNoConnection = &Error{Op: "connection", Errno: syscall.ENOENT, Err: ErrNotFound}

// LookupConnections asks for known connections, many in one send, with tcp_info
// if info is set. fn is given the request's number and the socket as it is now,
// which is reused: a connection that was closed since has the same cookie, another
// state and no inode as long as it is in FIN_WAIT2 or TIME_WAIT. Then, and where
// another socket has its addresses, the answer is ErrNotFound.
//
// An error of the exchange itself is returned; fn has then not been called for
// every request.
func (c *Conn) LookupConnections(ids []ConnectionID, info bool, fn func(i int, s *Socket, err error)) error {
	c.connections = connectionAsks{conn: c, ids: ids, fn: fn}
	if info {
		c.connections.ext = extension(diagInfo)
	}
	return c.askEach("connection", &c.connections)
}

// connectionAsks are the requests of one LookupConnections.
type connectionAsks struct {
	conn *Conn
	ids  []ConnectionID
	ext  uint8
	fn   func(i int, s *Socket, err error)
}

func (a *connectionAsks) count() int { return len(a.ids) }

func (a *connectionAsks) encode(b []byte, i int) ([]byte, bool) {
	if !a.ids[i].valid() {
		return b, false
	}
	return appendConnection(b, &a.ids[i], a.ext), true
}

func (a *connectionAsks) decode(i int, body []byte) {
	s, id := &a.conn.socket, &a.ids[i]
	switch err := s.decode(body); {
	case err != nil:
		a.fn(i, nil, wrap("connection", err))
	case id.Cookie == anyCookie && s.State == Listen:
		a.fn(i, s, nil)
	case s.Cookie != id.Cookie && id.Cookie != anyCookie, unmapped(s.Local) != unmapped(id.Local), unmapped(s.Remote) != unmapped(id.Remote):
		a.fn(i, nil, errNoConnection)
	default:
		a.fn(i, s, nil)
	}
}

// anyCookie is INET_DIAG_NOCOOKIE, twice: the kernel compares none.
const anyCookie = 1<<64 - 1

// Between is the socket that a segment from remote to local meets, with its tcp_info: a
// connection, closing ones included, one in SynRecv that is half-open, one in Listen where
// there is only a listener, the zero Socket where there is nothing (inet_lookup). device is
// the index of the one that the packets come by, which counts where a socket is bound to a
// device.
func (c *Conn) Between(local, remote netip.AddrPort, device uint32) (met Socket, err error) {
	id := ConnectionID{Family: FamilyIPv6, Local: local, Remote: remote, Cookie: anyCookie}
	if local.Addr().Is4() {
		id.Family = FamilyIPv4
	}
	ids := []ConnectionID{id, id}
	ids[1].Interface = device
	var refused error
	err = c.LookupConnections(ids, true, func(_ int, s *Socket, failed error) {
		switch {
		case failed == nil && nearer(s.State, met.State):
			met = *s
		case failed != nil && !errors.Is(failed, ErrNotFound):
			refused = failed
		}
	})
	return met, errors.Join(err, refused)
}

// nearer reports whether the kernel looks for a socket of one state before one of the other:
// a connection, a half-open one, a listener.
func nearer(a, b State) bool {
	rank := func(s State) int {
		switch s {
		case 0:
			return 0
		case Listen:
			return 1
		case SynRecv:
			return 2
		}
		return 3
	}
	return rank(a) > rank(b)
}

func (a *connectionAsks) fail(i int, errno syscall.Errno) {
	if errno == syscall.ENOENT {
		a.fn(i, nil, errNoConnection)
		return
	}
	a.fn(i, nil, refused("connection", errno))
}

// appendConnection encodes the exact request: struct inet_diag_req_v2 with both
// ends and the cookie.
func appendConnection(b []byte, id *ConnectionID, ext uint8) []byte {
	b = appendHeader(b, sockDiagByFamily, flagRequest)
	b = append(b, id.Family, protoTCP, ext, 0)
	b = binary.NativeEndian.AppendUint32(b, 0) // idiag_states is not read
	b = binary.BigEndian.AppendUint16(b, id.Local.Port())
	b = binary.BigEndian.AppendUint16(b, id.Remote.Port())
	b = appendAddr(b, id.Local.Addr())
	b = appendAddr(b, id.Remote.Addr())
	b = binary.NativeEndian.AppendUint32(b, id.Interface)
	b = binary.NativeEndian.AppendUint32(b, uint32(id.Cookie))
	return binary.NativeEndian.AppendUint32(b, uint32(id.Cookie>>32))
}

// appendAddr fills idiag_src or idiag_dst, an IPv4 address in the first of four.
func appendAddr(b []byte, a netip.Addr) []byte {
	if !a.Is4() {
		ip := a.As16()
		return append(b, ip[:]...)
	}
	ip := a.As4()
	return append(append(b, ip[:]...), make([]byte, 12)...)
}
