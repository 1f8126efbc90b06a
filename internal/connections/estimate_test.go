package connections

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// asked is a reading of n connections, of which some are in each phase.
func asked(n int) *Found {
	f := &Found{}
	for i := range n {
		s := sockdiag.Socket{
			State: sockdiag.Established, Inode: uint32(1 + i), HasInfo: true, Info: info(500*(1+i%120), 1, 1, 1, 1),
			Remote: netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:%d", 1+min(i%10, 3), 1024+i)),
		}
		switch i % 7 {
		case 0:
			s.State, s.RecvQ = sockdiag.CloseWait, uint32(i%3)
		case 1:
			s.Info = info(9, 9, 9, 1, 0)
		case 2:
			s.Info = info(9, 9, 9, 0, 0)
		case 3:
			s.SendQ = 1
		case 4:
			s.State, s.Inode = sockdiag.FinWait2, 0
		}
		f.Add(&s)
	}
	return f
}

// What was asked for stands for all, and sums stay sums whatever is rounded.
func TestEstimate(t *testing.T) {
	for _, s := range []Subset{{10_007, 4096, 0}, {123_457, 4099, 70}, {9000, 11, 3}, {8191, 1, 0}} {
		f := asked(s.Asked)
		f.Estimate(s)
		f.Finish(time.Unix(9, 0), 0, false)
		c := f.Behind(nil)
		require.Equal(t, s.Asked, c.Subset)
		require.Equal(t, c.Accepted, sum(c.Phases[:]))
		require.Equal(t, c.Accepted, c.States["ESTABLISHED"]+c.States["CLOSE_WAIT"])
		require.Equal(t, c.Phases[model.Idle], c.Silent+sum(f.quiet[:]))
		require.LessOrEqual(t, c.Abandoned+c.ClosedIdle, c.Phases[model.ClientClosed])
		require.InDelta(t, float64(s.Known), float64(c.Accepted+c.States["FIN_WAIT2"]), 1)
		require.LessOrEqual(t, c.Error, s.Known+s.New)
		if s.Asked > 4000 {
			require.InDelta(t, float64(s.Known)/7, float64(c.Phases[model.Sending]), float64(s.Known)/1000)
			require.Less(t, c.Error, s.Known/20)
			require.Equal(t, "192.0.2.4", c.TopPeers[0].Address.String())
			require.Less(t, c.TopPeers[0].Connections, s.Known*6/10, "at least so many")
			require.Greater(t, c.TopPeers[0].Connections, s.Known/2)
		}
	}
}

// Of all that are known there is nothing to estimate; what has come since is not known.
func TestEstimateOfAll(t *testing.T) {
	counted, estimated := asked(700), asked(700)
	estimated.Estimate(Subset{Known: 700, Asked: 700})
	require.Equal(t, counted.Behind(nil), estimated.Behind(nil))
	estimated.Estimate(Subset{Known: 700, Asked: 700, New: 2})
	c := estimated.Behind(nil)
	require.Equal(t, counted.Counts.Phases, c.Phases)
	require.Equal(t, 2, c.Error)
	require.False(t, c.Exact())
	none := &Found{}
	none.Estimate(Subset{Known: 10_000, Asked: 4096})
	require.Zero(t, none.Behind(nil).Accepted, "all have ended")
	require.Positive(t, none.Behind(nil).Error, "as far as can be known")
}

// The error of a share is that of the binomial interval at 99.8 %, less what is known of
// a finite population.
func TestSampleError(t *testing.T) {
	many := Subset{Known: 1_000_000_000, Asked: 4096}
	require.InDelta(t, .0241, float64(many.error(500_000_000))/1e9, .0001, "3.09 × √(¼ / 4096)")
	require.InDelta(t, .0062, float64(many.error(10_000_000))/1e9, .0001, "1 %")
	require.Positive(t, many.error(0), "one that none was found of may be there")
	half := Subset{Known: 8192, Asked: 4096}
	require.InDelta(t, 8192*.0241*.7071, float64(half.error(4096)), 2)
	require.Equal(t, many.error(300_000_000), many.error(700_000_000))
}

// A burst comes between two answers of Actuator: what it said before is not said of now.
func TestActuatorsFiguresOfTheTimeBefore(t *testing.T) {
	begin := time.Now()
	serving := func(n int) *Found {
		f := &Found{}
		f.Counts.Accepted, f.Counts.Phases[model.InService] = n, n
		return f
	}
	asked := func(busy int, at time.Time) *model.Connector {
		return &model.Connector{
			MaxThreads: &model.Setting[int]{Value: 10}, PoolThreads: new(10), BusyThreads: new(busy), BusyAt: at,
		}
	}
	after := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }

	var fs Figures
	var id model.ListenerID
	idle := asked(0, begin)
	require.Same(t, idle, fs.Current(id, idle, serving(0), after(.5)))
	now := fs.Current(id, idle, serving(4), after(1.2))
	require.Nil(t, now.BusyThreads, "the connections show more")
	require.Nil(t, fs.Current(id, idle, serving(4), after(1.2)).BusyThreads, "asked twice")
	require.Equal(t, 0, *idle.BusyThreads, "what discovery keeps stays")
	require.Same(t, idle, fs.Current(id, idle, serving(0), after(4)), "nor less")
	require.Same(t, idle, fs.Current(id, idle, serving(12), after(4.5)), "more than there are threads: nothing is known of them")

	// Asynchronous requests are in service, and Actuator has no busy thread before, nor after.
	require.Nil(t, fs.Current(id, idle, serving(8), after(4.8)).BusyThreads)
	async := asked(0, after(5))
	require.Same(t, async, fs.Current(id, async, serving(8), after(5.5)))
	require.Same(t, async, fs.Current(id, async, serving(9), after(9)))
	fs.Retain(nil)
	require.Same(t, async, fs.Current(id, async, serving(8), after(5.5)), "a snapshot has no walk before")

	require.Nil(t, fs.Current(id, nil, serving(1), begin))
}
