package sampler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// info is a connection that received and sent; ages in jiffies of 4 ms.
func info(recv, sent, ack, in, out int) sockdiag.TCPInfo {
	jiffies := func(n int) time.Duration { return time.Duration(n) * 4 * time.Millisecond }
	return sockdiag.TCPInfo{
		LastDataRecv: jiffies(recv), LastDataSent: jiffies(sent), LastAckRecv: jiffies(ack),
		BytesReceived: uint64(100 * in), DataSegsIn: uint32(in), DataSegsOut: uint32(out),
	}
}

func TestPhaseOf(t *testing.T) {
	tests := map[string]struct {
		state        sockdiag.State
		recvQ, sendQ uint32
		info         sockdiag.TCPInfo
		want         backlog.Phase
	}{
		"FIN came, request unread":          {sockdiag.CloseWait, 101, 0, info(5, 9, 5, 1, 0), backlog.ClientClosed},
		"FIN came, being served":            {sockdiag.CloseWait, 1, 0, info(5, 9, 5, 1, 0), backlog.ClientClosed},
		"request unread":                    {sockdiag.Established, 100, 0, info(5, 9, 5, 1, 0), backlog.Waiting},
		"next request unread":               {sockdiag.Established, 100, 0, info(1, 9, 1, 2, 1), backlog.Waiting},
		"upload: the head was read":         {sockdiag.Established, 50, 0, info(5, 9, 5, 1, 0), backlog.InService},
		"response not acknowledged":         {sockdiag.Established, 0, 4096, info(9, 1, 1, 1, 3), backlog.Sending},
		"nothing received":                  {sockdiag.Established, 0, 0, info(9, 9, 9, 0, 0), backlog.Idle},
		"received, nothing sent":            {sockdiag.Established, 0, 0, info(9, 9, 9, 1, 0), backlog.InService},
		"received later than sent":          {sockdiag.Established, 0, 0, info(1, 50, 1, 2, 1), backlog.InService},
		"sent later than received":          {sockdiag.Established, 0, 0, info(50, 1, 1, 2, 2), backlog.Idle},
		"tie, a later pure ACK":             {sockdiag.Established, 0, 0, info(9, 9, 3, 9, 3), backlog.Idle},
		"tie, as many segments out as in":   {sockdiag.Established, 0, 0, info(9, 9, 9, 7, 7), backlog.Idle},
		"tie, one more segment in than out": {sockdiag.Established, 0, 0, info(0, 0, 0, 8, 7), backlog.InService},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := sockdiag.Socket{State: tt.state, RecvQ: tt.recvQ, SendQ: tt.sendQ, Inode: 1, Info: tt.info, HasInfo: true}
			require.Equal(t, tt.want, phaseOf(&s))
		})
	}
}

func TestAttend(t *testing.T) {
	virtual := &backlog.Setting[bool]{Value: true}
	tests := map[string]struct {
		phases    [backlog.NumPhases]int
		abandoned int
		lingering int
		connector *backlog.Connector
		waiting   int
	}{
		"bodies that handlers do not read":      {[backlog.NumPhases]int{backlog.Waiting: 50}, 0, 50, &backlog.Connector{PoolThreads: new(50)}, 0},
		"all workers have a request":            {[backlog.NumPhases]int{backlog.Waiting: 50, backlog.InService: 4}, 0, 50, &backlog.Connector{PoolThreads: new(4)}, 50},
		"one worker unaccounted for":            {[backlog.NumPhases]int{backlog.Waiting: 50, backlog.InService: 3}, 0, 50, &backlog.Connector{PoolThreads: new(4)}, 49},
		"it serves a client that closed":        {[backlog.NumPhases]int{backlog.Waiting: 50, backlog.InService: 3, backlog.ClientClosed: 1}, 0, 50, &backlog.Connector{PoolThreads: new(4)}, 50},
		"that client's request waits, too":      {[backlog.NumPhases]int{backlog.Waiting: 50, backlog.InService: 3, backlog.ClientClosed: 1}, 1, 50, &backlog.Connector{PoolThreads: new(4)}, 49},
		"requests that came a moment ago":       {[backlog.NumPhases]int{backlog.Waiting: 9}, 0, 0, &backlog.Connector{PoolThreads: new(10)}, 9},
		"workers cannot be counted":             {[backlog.NumPhases]int{backlog.Waiting: 9}, 0, 9, &backlog.Connector{}, 9},
		"virtual threads: there is always one":  {[backlog.NumPhases]int{backlog.Waiting: 9}, 0, 9, &backlog.Connector{VirtualThreads: virtual}, 0},
		"TLS: nothing is claimed of in service": {[backlog.NumPhases]int{backlog.Waiting: 9}, 0, 9, &backlog.Connector{TLS: true, PoolThreads: new(10)}, 9},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := backlog.Connections{Phases: tt.phases, Abandoned: tt.abandoned}
			attend(&c, tt.lingering, tt.connector)
			require.Equal(t, tt.waiting, c.Phases[backlog.Waiting])
			require.Equal(t, tt.phases[backlog.Waiting]+tt.phases[backlog.InService], c.Phases[backlog.Waiting]+c.Phases[backlog.InService])
		})
	}
}

func TestUnclassify(t *testing.T) {
	phases := [backlog.NumPhases]int{backlog.Waiting: 3, backlog.InService: 20, backlog.Idle: 7, backlog.ClientClosed: 1}
	virtual := &backlog.Setting[bool]{Value: true}
	tests := map[string]struct {
		connector               *backlog.Connector
		inService, idle, unsure int
	}{
		"nothing known":         {nil, 20, 7, 0},
		"pool is large enough":  {&backlog.Connector{PoolThreads: new(20)}, 20, 7, 0},
		"more than the threads": {&backlog.Connector{PoolThreads: new(12)}, 12, 7, 8},
		"virtual threads":       {&backlog.Connector{PoolThreads: new(1), VirtualThreads: virtual}, 20, 7, 0},
		"TLS":                   {&backlog.Connector{TLS: true, PoolThreads: new(200)}, 0, 0, 27},
		"HTTP/2":                {&backlog.Connector{HTTP2: true}, 0, 0, 27},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := backlog.Connections{Accepted: 31, Phases: phases, Silent: 2}
			unclassify(&c, tt.connector)
			require.LessOrEqual(t, c.Silent, c.Phases[backlog.Idle], "they are among the idle")
			require.Equal(t, tt.inService, c.Phases[backlog.InService])
			require.Equal(t, tt.idle, c.Phases[backlog.Idle])
			require.Equal(t, tt.unsure, c.Phases[backlog.Unclassified])
			sum := 0
			for _, n := range c.Phases {
				sum += n
			}
			require.Equal(t, c.Accepted, sum, "the phases sum to accepted")
		})
	}
}
