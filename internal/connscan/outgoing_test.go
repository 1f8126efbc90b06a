package connscan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// A process that holds nothing but its listening sockets and its clients' connections has
// no outgoing one: the table is not searched for any, unless ports in TIME_WAIT, which no
// process holds, may matter.
func TestNobodyHasAnOutgoingConnection(t *testing.T) {
	const listens, first, second, others = 7, 11, 12, 99
	for name, c := range map[string]struct {
		held      []uint32
		users     []uint32
		due, left bool
		walks     int
	}{
		"none":                                 {held: []uint32{listens, first, second}},
		"none, although ports are short":       {held: []uint32{listens, first, second}, due: true},
		"ports may be in TIME_WAIT":            {held: []uint32{listens, first, second}, due: true, left: true, walks: 1},
		"one socket is neither":                {held: []uint32{listens, first, second, others}, walks: 1},
		"one client is gone, another socket":   {held: []uint32{listens, first, others}, due: true, walks: 1},
		"the descriptors could not be read":    {users: []uint32{1000}, walks: 1},
		"those of one of two could not be":     {held: []uint32{listens, first}, users: []uint32{1000}, due: true, walks: 1},
		"it holds no socket, as it just ended": {},
	} {
		t.Run(name, func(t *testing.T) {
			k := &countedKernel{}
			n := namespace.New(1, 1, k, new(namespace.Shared), time.Minute)
			require.NoError(t, n.Follow(time.Now()))
			table, scan := &memory{}, &downstream.Scan{}
			sweep := &reading{
				at: time.Now(), scan: scan, wanted: &sockdiag.Ports{}, owned: &ownedSockets{inodes: c.held, users: c.users},
				accepted: []uint32{second, first}, listening: []uint32{listens},
				outgoing: &portSearch{apart: true, due: c.due, left: c.left, peers: make(connections.Peers)},
			}
			require.NoError(t, table.walkOutgoing(sweep, n))
			require.Equal(t, c.walks, k.walks)
		})
	}
}

// countedKernel is a kernel without listeners that counts its walks.
type countedKernel struct {
	namespace.Kernel
	walks int
}

func (*countedKernel) Listeners(func(), func(*sockdiag.Listener) error) error      { return nil }
func (*countedKernel) ListenersApart(func(), func(*sockdiag.Listener) error) error { return nil }
func (*countedKernel) ListenCounters(*netstat.ListenCounters) error                { return nil }
func (*countedKernel) Counters(map[string]uint64) error                            { return nil }

func (k *countedKernel) Walk(sockdiag.Wanted, func(), func(*sockdiag.Socket) error) error {
	k.walks++
	return nil
}
