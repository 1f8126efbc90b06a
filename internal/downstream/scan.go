package downstream

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// MaxConnections bounds what one walk keeps. A process with more outgoing
// connections has another problem first: its ephemeral ports.
const MaxConnections = 20_000

// Connection is an outgoing connection as a walk found it.
type Connection struct {
	Cookie      uint64
	Inode, UID  uint32
	Remote      netip.AddrPort
	Here        bool          // it leads to this host, by the loopback or an address of its own
	Flight      Flight        // as it looks by itself: Unknown where the ages tie
	Age         time.Duration // since the last data were sent
	Retransmits uint8         // of the SYN, where it connects
}

// Scan collects the outgoing connections of one walk. Its memory is reused.
type Scan struct {
	List    []Connection
	Partial bool // there were more
}

// Reset begins another walk.
func (s *Scan) Reset() { s.List, s.Partial = s.List[:0], false }

// Carries reports whether a socket whose local port is ephemeral is, or is to be, a
// connection of a process. One without an inode belongs to none any more.
func Carries(sock *sockdiag.Socket) bool {
	return sock.Inode != 0 && (sock.State == sockdiag.Established || sock.State == sockdiag.SynSent)
}

// Add takes a socket that Carries accepts.
func (s *Scan) Add(sock *sockdiag.Socket) {
	if !Carries(sock) {
		return
	}
	if len(s.List) >= MaxConnections {
		s.Partial = true
		return
	}
	s.List = append(s.List, Connection{
		Cookie: sock.Cookie, Inode: sock.Inode, UID: sock.UID, Remote: sock.RemoteAddress(), Here: leadsHere(sock),
		Flight: FlightOf(sock, Unknown), Age: sock.Info.LastDataSent, Retransmits: sock.Info.Retransmits,
	})
}

// leadsHere: towards an address of this host the kernel takes the same address as
// the source.
func leadsHere(s *sockdiag.Socket) bool {
	remote := s.Remote.Addr().Unmap()
	return remote.IsLoopback() || remote == s.Local.Addr().Unmap()
}
