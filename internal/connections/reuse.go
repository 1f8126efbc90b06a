package connections

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// timeWaitLength is TCP_TIMEWAIT_LEN.
const timeWaitLength = time.Minute

// Reuse says which sockets in TIME_WAIT leave their port to a new connection to the
// same peer (tcp_twsk_unique). Towards another peer any of them does. The zero value
// is none.
type Reuse struct {
	loopback, everywhere bool
	after                time.Duration // in TIME_WAIT
}

// ReuseOf is what net.ipv4.tcp_tw_reuse allows: 1 everywhere, 2 on the loopback; after
// a second, or tcp_tw_reuse_delay where the kernel has that; only of connections with
// timestamps.
func ReuseOf(sysctl map[string]int) Reuse {
	reuse, after := sysctl["tcp_tw_reuse"], time.Second
	if delay, ok := sysctl["tcp_tw_reuse_delay"]; ok {
		after = time.Duration(delay) * time.Millisecond
	}
	if stamps, ok := sysctl["tcp_timestamps"]; ok && stamps == 0 {
		return Reuse{}
	}
	return Reuse{loopback: reuse == 1 || reuse == 2, everywhere: reuse == 1, after: after}
}

// allows: that a peer has refused timestamps is not seen.
func (r Reuse) allows(s *sockdiag.Socket) bool {
	here := s.Remote.Addr().Unmap().IsLoopback() || s.Local.Addr().Unmap().IsLoopback()
	if !r.everywhere && (!r.loopback || !here) {
		return false
	}
	return timeWaitLength-time.Duration(s.Expires)*time.Millisecond > r.after
}
