package connections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
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

// sized is what a kernel says that reports the segments with data, each of this many
// bytes sent.
func sized(i sockdiag.TCPInfo, bytes int) sockdiag.TCPInfo {
	i.Size, i.BytesAcked = 1<<10, uint64(bytes)*uint64(i.DataSegsOut)
	return i
}

func TestPhaseOf(t *testing.T) {
	tests := map[string]struct {
		state        sockdiag.State
		recvQ, sendQ uint32
		info         sockdiag.TCPInfo
		want         model.Phase
	}{
		"FIN came, request unread":           {sockdiag.CloseWait, 101, 0, info(5, 9, 5, 1, 0), model.ClientClosed},
		"FIN came, being served":             {sockdiag.CloseWait, 1, 0, info(5, 9, 5, 1, 0), model.ClientClosed},
		"request unread":                     {sockdiag.Established, 100, 0, info(5, 9, 5, 1, 0), model.Waiting},
		"next request unread":                {sockdiag.Established, 100, 0, info(1, 9, 1, 2, 1), model.Waiting},
		"upload: the head was read":          {sockdiag.Established, 50, 0, info(5, 9, 5, 1, 0), model.InService},
		"response not acknowledged":          {sockdiag.Established, 0, 4096, info(9, 1, 1, 1, 3), model.Sending},
		"nothing received":                   {sockdiag.Established, 0, 0, info(9, 9, 9, 0, 0), model.Idle},
		"received, nothing sent":             {sockdiag.Established, 0, 0, info(9, 9, 9, 1, 0), model.InService},
		"received later than sent":           {sockdiag.Established, 0, 0, info(1, 50, 1, 2, 1), model.InService},
		"sent later than received":           {sockdiag.Established, 0, 0, info(50, 1, 1, 2, 2), model.Idle},
		"tie, a later pure ACK":              {sockdiag.Established, 0, 0, info(9, 9, 3, 9, 3), model.Idle},
		"tie, as many segments out as in":    {sockdiag.Established, 0, 0, info(9, 9, 9, 7, 7), model.Idle},
		"events for 2 s, the last 0.4 s ago": {sockdiag.Established, 0, 0, sized(info(500, 100, 100, 1, 9), 50), model.Streaming},
		"quiet for longer than it sent":      {sockdiag.Established, 0, 0, sized(info(500, 300, 300, 1, 9), 50), model.Idle},
		"one slow response":                  {sockdiag.Established, 0, 0, sized(info(500, 100, 100, 1, 3), 50), model.Idle},
		"one large response":                 {sockdiag.Established, 0, 0, sized(info(500, 100, 100, 1, 9), 32000), model.Idle},
		"an event that is not acknowledged":  {sockdiag.Established, 0, 50, sized(info(500, 0, 0, 1, 9), 50), model.Sending},
		"the client sent last":               {sockdiag.Established, 0, 0, sized(info(0, 100, 0, 1, 9), 50), model.InService},
		"segments are not told":              {sockdiag.Established, 0, 0, info(500, 100, 100, 1, 9), model.Idle},
		"tie, one more segment in than out":  {sockdiag.Established, 0, 0, info(0, 0, 0, 8, 7), model.InService},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := sockdiag.Socket{State: tt.state, RecvQ: tt.recvQ, SendQ: tt.sendQ, Inode: 1, Info: tt.info, HasInfo: true}
			require.Equal(t, tt.want, PhaseOf(&s))
		})
	}
}

func TestAttend(t *testing.T) {
	virtual := &model.Setting[bool]{Value: true}
	tests := map[string]struct {
		phases    [model.NumPhases]int
		abandoned int
		lingering int
		connector *model.Connector
		waiting   int
	}{
		"bodies that handlers do not read":      {[model.NumPhases]int{model.Waiting: 50}, 0, 50, &model.Connector{PoolThreads: new(50)}, 0},
		"all workers have a request":            {[model.NumPhases]int{model.Waiting: 50, model.InService: 4}, 0, 50, &model.Connector{PoolThreads: new(4)}, 50},
		"one worker unaccounted for":            {[model.NumPhases]int{model.Waiting: 50, model.InService: 3}, 0, 50, &model.Connector{PoolThreads: new(4)}, 49},
		"it serves a client that closed":        {[model.NumPhases]int{model.Waiting: 50, model.InService: 3, model.ClientClosed: 1}, 0, 50, &model.Connector{PoolThreads: new(4)}, 50},
		"that client's request waits, too":      {[model.NumPhases]int{model.Waiting: 50, model.InService: 3, model.ClientClosed: 1}, 1, 50, &model.Connector{PoolThreads: new(4)}, 49},
		"requests that came a moment ago":       {[model.NumPhases]int{model.Waiting: 9}, 0, 0, &model.Connector{PoolThreads: new(10)}, 9},
		"workers cannot be counted":             {[model.NumPhases]int{model.Waiting: 9}, 0, 9, &model.Connector{}, 9},
		"virtual threads: there is always one":  {[model.NumPhases]int{model.Waiting: 9}, 0, 9, &model.Connector{VirtualThreads: virtual}, 0},
		"TLS: nothing is claimed of in service": {[model.NumPhases]int{model.Waiting: 9}, 0, 9, &model.Connector{TLS: true, PoolThreads: new(10)}, 9},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := model.Connections{Phases: tt.phases, Abandoned: tt.abandoned}
			attend(&c, tt.lingering, tt.connector)
			require.Equal(t, tt.waiting, c.Phases[model.Waiting])
			require.Equal(t, tt.phases[model.Waiting]+tt.phases[model.InService], c.Phases[model.Waiting]+c.Phases[model.InService])
		})
	}
}

func TestUnclassify(t *testing.T) {
	phases := [model.NumPhases]int{model.Waiting: 3, model.InService: 20, model.Idle: 7, model.ClientClosed: 1}
	virtual := &model.Setting[bool]{Value: true}
	tests := map[string]struct {
		connector               *model.Connector
		inService, idle, unsure int
	}{
		"nothing known":         {nil, 20, 7, 0},
		"pool is large enough":  {&model.Connector{PoolThreads: new(20)}, 20, 7, 0},
		"more than the threads": {&model.Connector{PoolThreads: new(12)}, 12, 7, 8},
		"virtual threads":       {&model.Connector{PoolThreads: new(1), VirtualThreads: virtual}, 20, 7, 0},
		"TLS":                   {&model.Connector{TLS: true, PoolThreads: new(200)}, 0, 2, 25},
		"HTTP/2":                {&model.Connector{HTTP2: true}, 0, 2, 25},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := model.Connections{Accepted: 31, Phases: phases, Silent: 2}
			unclassify(&c, tt.connector)
			require.LessOrEqual(t, c.Silent, c.Phases[model.Idle], "they are among the idle")
			require.Equal(t, tt.inService, c.Phases[model.InService])
			require.Equal(t, tt.idle, c.Phases[model.Idle])
			require.Equal(t, tt.unsure, c.Phases[model.Unclassified])
			sum := 0
			for _, n := range c.Phases {
				sum += n
			}
			require.Equal(t, c.Accepted, sum, "the phases sum to accepted")
		})
	}
}
