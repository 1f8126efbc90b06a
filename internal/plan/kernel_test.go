package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The offsets are those of packets seen on a loopback of Linux 6.18, HZ=250,
// from the first one; each timer may fire up to one step of the timer wheel
// earlier or later than this run's.
func TestKernelTimersAsCaptured(t *testing.T) {
	chain := func(waits ...int64) (out []time.Duration) {
		now := time.Duration(0)
		for _, w := range waits {
			now = fireAt(now, w)
			out = append(out, now)
		}
		return out
	}
	data := newDataRetries(0)
	tests := []struct {
		name     string
		got      []time.Duration
		captured []float64
	}{
		{"SYN", chain(SynRetriesLinear.waits()...)[:10], []float64{1.007, 2.031, 3.055, 4.079, 5.103, 7.119, 11.183, 19.375, 35.503, 69.295}},
		{"SYN, exponential", chain(SynRetriesExponential.waits()...)[:4], []float64{1.02, 3.04, 7.1, 15.3}},
		{"SYN+ACK", chain(second, 2*second, 4*second, 8*second, 16*second), []float64{1.024, 3.04, 7.072, 15.268, 31.392}},
		{"request", chain(data[:9]...), []float64{0.208, 0.416, 0.832, 1.664, 3.328, 6.816, 13.472, 26.784, 53.92}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Len(t, tt.got, len(tt.captured))
			for i, want := range tt.captured {
				require.InEpsilon(t, want, tt.got[i].Seconds(), 0.03, "the %d. of %v", i+1, tt.got)
			}
		})
	}
}

// A program that sets no connect timeout gets ETIMEDOUT from the kernel.
func TestSynRetriesEnd(t *testing.T) {
	for rhythm, want := range map[SynRetries]float64{SynRetriesLinear: 131, SynRetriesExponential: 127} {
		var sum int64
		for _, w := range rhythm.waits() {
			sum += w
		}
		require.InDelta(t, want, jiffies(sum).Seconds(), 0.01, rhythm)
	}
}

// Timers never fire early, and the later one is set the later it fires: the
// queues of planTimers rely on it.
func TestFireAt(t *testing.T) {
	for _, wait := range []int64{1, 51, 62, 63, 250, 503, 504, 4031, 4032, 40000} {
		last := time.Duration(0)
		for now := time.Duration(0); now < 3*time.Second; now += 1700 * time.Microsecond {
			at := fireAt(now, wait)
			require.GreaterOrEqual(t, at, now-now%jiffy+jiffies(wait))
			require.Less(t, at, now+jiffies(wait)+jiffies(max(2, wait/7)), "wait %d", wait)
			require.GreaterOrEqual(t, at, last)
			last = at
		}
	}
}

func TestSynQueuePruning(t *testing.T) {
	tests := []struct {
		name       string
		len, young int
		backlog    int
		want       int
	}{
		{"few: all five repetitions", 4, 0, 100, 5},
		{"below 8 nothing is clogged", 4, 0, 1, 5},
		{"half full, all young", 60, 60, 100, 5},
		{"half full, half young", 60, 30, 100, 4},
		{"half full, some young", 60, 10, 100, 3},
		{"half full, none young: forgotten after 7 s", 60, 0, 100, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := synQueue{len: tt.len, young: tt.young}
			require.Equal(t, tt.want, q.retries(tt.backlog))
		})
	}
}

func TestPlanTimersOrder(t *testing.T) {
	timers := newPlanTimers()
	timers.set(timerFinalACK, 5, 1)
	timers.set(timerSYN, 5, 2)
	timers.set(timerSYN, 5, 3)
	timers.set(timerSYN+1, 5, 4)
	timers.set(timerResponse, 5, 5)
	timers.set(timerFinish, 5, 6)
	timers.set(timerData, 4, 7)
	var got []int32
	for {
		_, e, ok := timers.pop()
		if !ok {
			break
		}
		got = append(got, e.client)
	}
	require.Equal(t, []int32{7, 6, 5, 2, 3, 4, 1}, got)
}

func TestPlanQueueReusesItsRoom(t *testing.T) {
	var q planQueue[int]
	next := 0
	for i := range 10_000 {
		q.push(i)
		if q.len() > 10 {
			require.Equal(t, next, q.peek())
			require.Equal(t, next, q.pop())
			next++
		}
	}
	require.Less(t, cap(q.items), 1000)
	require.Equal(t, 10, q.len())
}

// A small SYN queue is full with the backlog, others with one more.
func TestSynQueueIsFull(t *testing.T) {
	for waiting, want := range map[int][2]bool{2: {false, false}, 3: {false, true}, 4: {true, true}} {
		q := synQueue{len: waiting}
		require.Equal(t, want, [2]bool{q.full(3, false), q.full(3, true)}, waiting)
	}
}
