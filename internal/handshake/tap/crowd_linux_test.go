package tap

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
)

// crowd starts n clients at once, and returns the outcome that each reports.
func (w world) crowd(t *testing.T, tap *Tap, to netip.AddrPort, n int, patience time.Duration) (counts [outcome.NumOutcomes]uint64) {
	start := time.Now()
	waiting := newEvents(t, unix.EPOLLOUT, w.connect(t, to, n))
	var inside []*client
	for len(waiting.of) > 0 && time.Since(start) < patience {
		for _, c := range waiting.next(t) {
			switch in, err := c.state(t); {
			case in:
				counts[c.letIn(t)]++
				_, err := unix.Write(c.fd, []byte("x")) // says again what its ACK said
				require.NoError(t, err)
				inside = append(inside, c)
			case errors.Is(err, unix.ECONNREFUSED):
				counts[outcome.Refused]++
				c.close()
			default:
				require.NoError(t, err)
			}
		}
		_, err := tap.Report() // the ring holds some thousand packets
		require.NoError(t, err)
	}
	for _, c := range waiting.of {
		counts[outcome.GaveUp]++
		c.close()
	}
	answered := newEvents(t, unix.EPOLLIN, inside) // by a server that has said something
	for deadline := time.Now().Add(2 * time.Minute); len(answered.of) > 0; {
		require.True(t, time.Now().Before(deadline), "%d clients hear nothing", len(answered.of))
		for _, c := range answered.next(t) {
			_, err := unix.Read(c.fd, make([]byte, 1)) // what is not read would make a RST of the close
			require.NoError(t, err)
			c.close()
		}
	}
	return counts
}

// events are clients that wait for something, each once.
type events struct {
	epoll int
	of    map[int32]*client
}

func newEvents(t *testing.T, wanted uint32, clients []*client) *events {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	e := &events{fd, make(map[int32]*client)}
	for _, c := range clients {
		event := unix.EpollEvent{Events: wanted | unix.EPOLLONESHOT, Fd: int32(c.fd)}
		require.NoError(t, unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, c.fd, &event))
		e.of[event.Fd] = c
	}
	return e
}

// next are those of which it has come, none after a tenth of a second.
func (e *events) next(t *testing.T) (came []*client) {
	var all [100]unix.EpollEvent
	n, err := unix.EpollWait(e.epoll, all[:], 100)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	require.NoError(t, err)
	for _, event := range all[:n] {
		came = append(came, e.of[event.Fd])
		delete(e.of, event.Fd)
	}
	return came
}

// letIn is whether the client had to repeat its SYN.
func (c *client) letIn(t *testing.T) outcome.Outcome {
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	require.NoError(t, err)
	if info.Total_retrans > 0 {
		return outcome.Delayed
	}
	return outcome.Connected
}
