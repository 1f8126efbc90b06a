package connections

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Twelve were answered: ten 9 s ago, two a second ago.
func TestOutlived(t *testing.T) {
	set := func(d time.Duration) *model.Setting[time.Duration] { return &model.Setting[time.Duration]{Value: d} }
	var f Found
	for i := range 12 {
		age := 9 * time.Second
		if i < 2 {
			age = time.Second
		}
		f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 1, HasInfo: true, Info: sockdiag.TCPInfo{
			BytesReceived: 100, DataSegsIn: 1, DataSegsOut: 1, LastDataRecv: age + time.Millisecond, LastDataSent: age,
		}})
	}
	for name, tt := range map[string]struct {
		connector model.Connector
		want      int
	}{
		"they would have been ended":     {model.Connector{KeepAliveTimeout: set(3 * time.Second)}, 10},
		"they may be":                    {model.Connector{KeepAliveTimeout: set(6 * time.Second)}, 0},
		"a longer timeout":               {model.Connector{KeepAliveTimeout: set(time.Hour)}, 0},
		"none is ever ended":             {model.Connector{KeepAliveTimeout: set(-1), ConnectionTimeout: set(time.Second)}, 0},
		"unset, it is connectionTimeout": {model.Connector{ConnectionTimeout: set(3 * time.Second)}, 10},
		"a timeout with a doubt":         {model.Connector{KeepAliveTimeout: &model.Setting[time.Duration]{Value: 1, Uncertain: true}}, 0},
		"no timeout is known":            {model.Connector{}, 0},
		"TLS":                            {model.Connector{TLS: true, KeepAliveTimeout: set(time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := f.Behind(&tt.connector)
			require.Equal(t, tt.want, c.Outlived)
			if tt.connector.TLS {
				return
			}
			require.Equal(t, 12-tt.want, c.Phases[model.Idle])
			require.Equal(t, tt.want, c.Phases[model.Unclassified])
		})
	}
	require.Zero(t, f.Behind(nil).Outlived)
	require.Equal(t, 2, f.Behind(nil).Recent, "used within the last two seconds")
	require.Zero(t, f.Behind(&model.Connector{TLS: true}).Recent, "nothing is said of encrypted ones")
}

// How long requests have waited: of a first one it is certain that nobody has read a byte,
// of a later one the head may have been.
func TestUnread(t *testing.T) {
	var f Found
	waits := func(age time.Duration, out uint32) {
		f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 1, RecvQ: 80, HasInfo: true, Info: sockdiag.TCPInfo{
			BytesReceived: 80, DataSegsIn: 1 + out, DataSegsOut: out, LastDataRecv: age, LastDataSent: time.Minute,
		}})
	}
	waits(2*time.Second, 0)
	waits(time.Second, 0)
	waits(3*time.Second, 1)
	f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 1, RecvQ: 80, HasInfo: true, Info: sockdiag.TCPInfo{
		BytesReceived: 1000, DataSegsIn: 1, LastDataRecv: time.Hour, // an upload: its head was read
	}})
	c := f.Behind(nil)
	require.Equal(t, 2*time.Second, c.Unread)
	require.Equal(t, 3*time.Second, c.UnreadNext)
	require.Equal(t, 3, c.Phases[model.Waiting])
}

// A first request whose client has closed waits as any other, if nobody read a byte of it: the
// FIN counts in Recv-Q and in tcpi_bytes_received. Of one that was read in part nothing is said.
func TestUnreadOfClientsThatClosed(t *testing.T) {
	closed := func(recvQ uint32, received uint64, out uint32) time.Duration {
		var f Found
		f.Add(&sockdiag.Socket{State: sockdiag.CloseWait, Inode: 1, RecvQ: recvQ, HasInfo: true, Info: sockdiag.TCPInfo{
			BytesReceived: received, DataSegsIn: 1, DataSegsOut: out, LastDataRecv: 40 * time.Second,
		}})
		return f.Behind(nil).Unread
	}
	require.Equal(t, 40*time.Second, closed(81, 81, 0))
	require.Zero(t, closed(81, 1000, 0), "its head was read")
	require.Zero(t, closed(81, 1000, 3), "a later request")
	require.Zero(t, closed(1, 1, 0), "it never sent anything")
}

// Which idle connections may be in service: a response that comes in pieces, and a request that
// came with the acknowledgement of a response of several segments.
func TestMaybeBusy(t *testing.T) {
	for name, tt := range map[string]struct {
		recv, sent, ack time.Duration
		in, out         uint32
		want            int
	}{
		"between two pieces of a response":           {400 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond, 1, 5, 1},
		"answered at once, a second ago":             {1004 * time.Millisecond, time.Second, time.Second, 9, 9, 0},
		"answered after a while, and longer ago":     {900 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond, 9, 9, 0},
		"a tie: a segment out for each in":           {time.Second, time.Second, time.Second, 9, 9, 0},
		"a tie, acknowledged later":                  {time.Second, time.Second, 960 * time.Millisecond, 9, 18, 0},
		"a tie, of responses of several segments":    {200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, 9, 18, 1},
		"the same, but too long ago for any request": {3 * time.Second, 3 * time.Second, 3 * time.Second, 9, 18, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var f Found
			f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 1, HasInfo: true, Info: sockdiag.TCPInfo{
				BytesReceived: 100, DataSegsIn: tt.in, DataSegsOut: tt.out, LastDataRecv: tt.recv, LastDataSent: tt.sent, LastAckRecv: tt.ack, BytesAcked: 1 << 20,
			}})
			c := f.Behind(nil)
			require.Equal(t, 1, c.Phases[model.Idle])
			require.Equal(t, tt.want, c.MaybeBusy)
		})
	}
}

// A connection without a byte is silent after a second: until then its request is on the way.
func TestSilent(t *testing.T) {
	for age, want := range map[time.Duration][3]int{ // idle, silent, may be busy
		0:                      {1, 0, 1},
		900 * time.Millisecond: {1, 0, 1},
		time.Second:            {1, 1, 0},
		time.Hour:              {1, 1, 0},
	} {
		var f Found
		f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 1, HasInfo: true, Info: sockdiag.TCPInfo{LastDataRecv: age, LastDataSent: age, LastAckRecv: age}})
		c := f.Behind(nil)
		require.Equal(t, want, [3]int{c.Phases[model.Idle], c.Silent, c.MaybeBusy}, age)
		require.Equal(t, c.Phases[model.Idle], c.Silent+sum(f.quiet[:]))
	}
}

// Of a connection whose client has left it is not known whether its last request was answered, where that may have come
// with the response before it. A worker that is free would have closed one that was idle.
func TestClosedAndStillOpen(t *testing.T) {
	workers := func(n int) *model.Connector { return &model.Connector{PoolThreads: &n} }
	virtual := &model.Connector{VirtualThreads: &model.Setting[bool]{Value: true}}
	for name, tt := range map[string]struct {
		recv, sent, fin time.Duration
		connector       *model.Connector
		idle            int
	}{
		"a tie, and the FIN came later":    {2 * time.Second, 2 * time.Second, time.Second, virtual, 0},
		"by a worker of two":               {2 * time.Second, 2 * time.Second, time.Second, workers(2), 0},
		"the one worker serves another":    {2 * time.Second, 2 * time.Second, time.Second, workers(1), 1},
		"the FIN has just come":            {2 * time.Second, 2 * time.Second, 8 * time.Millisecond, virtual, 1},
		"answered after a while":           {2 * time.Second, 1500 * time.Millisecond, time.Second, virtual, 1},
		"nobody knows who serves requests": {2 * time.Second, 2 * time.Second, time.Second, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var f Found
			f.Add(&sockdiag.Socket{State: sockdiag.CloseWait, Inode: 1, RecvQ: 1, HasInfo: true, Info: sockdiag.TCPInfo{
				BytesReceived: 161, DataSegsIn: 2, DataSegsOut: 2, LastDataRecv: tt.recv, LastDataSent: tt.sent, LastAckRecv: tt.fin,
			}})
			f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 2, HasInfo: true, Info: sockdiag.TCPInfo{
				BytesReceived: 80, DataSegsIn: 1, LastDataRecv: time.Second, LastDataSent: 2 * time.Second, LastAckRecv: time.Second,
			}})
			require.Equal(t, tt.idle, f.Behind(tt.connector).ClosedIdle)
		})
	}
}

// A client of TLS that has its answer says that it closes, and closes: nobody has read that yet, or the server has and
// answers it. It has given up nothing.
func TestFarewellOfTLS(t *testing.T) {
	closed := func(port uint16, unread uint32, sent uint32) *sockdiag.Socket {
		s := &sockdiag.Socket{State: sockdiag.CloseWait, Inode: 1, HasInfo: true, RecvQ: unread, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
		s.Info.BytesReceived, s.Info.DataSegsOut, s.Info.DataSegsIn = 600, sent, 4
		return s
	}
	// read is one of which all was read, and the FIN came that long after the last data.
	read := func(fin time.Duration) *sockdiag.Socket {
		s := closed(1, 1, 3)
		s.Info.LastDataRecv, s.Info.LastDataSent, s.Info.LastAckRecv = fin, fin+time.Second, 0
		return s
	}
	for name, c := range map[string]struct {
		socket    *sockdiag.Socket
		connector *model.Connector
		abandoned int
	}{
		"TLS, a close_notify that was read":  {read(4 * time.Millisecond), &model.Connector{TLS: true}, 0},
		"TLS, a request in service":          {read(2 * time.Second), &model.Connector{TLS: true}, 1},
		"no TLS, a request and FIN together": {read(4 * time.Millisecond), &model.Connector{}, 1},
		"TLS, a close_notify":                {closed(1, 1+24, 3), &model.Connector{TLS: true}, 0},
		"TLS, a request":                     {closed(1, 1+90, 3), &model.Connector{TLS: true}, 1},
		"TLS, nothing was sent":              {closed(1, 1+24, 0), &model.Connector{TLS: true}, 1},
		"no TLS, as many bytes":              {closed(1, 1+24, 3), &model.Connector{}, 1},
		"it is not known what is spoken":     {closed(1, 1+24, 3), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var f Found
			f.Add(c.socket)
			f.Add(closed(2, 1+200, 3)) // another one's request
			counts := f.Behind(c.connector)
			unread := 1 + c.abandoned
			if c.socket.RecvQ == 1 {
				unread = 1
			}
			require.Equal(t, unread, counts.Abandoned)
			require.Equal(t, 1-c.abandoned, counts.ClosedIdle)
			require.Len(t, f.Unanswered(c.connector), 1+c.abandoned)
			require.Len(t, f.Closed, 2)
		})
	}
}
