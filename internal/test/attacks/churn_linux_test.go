package attacks

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestLongChurn: 250 listeners a second, each on a new address and for a second, cost little
// and leave nothing behind.
func TestLongChurn(t *testing.T) {
	nettest.Root(t)
	program, last := build(t), 15*time.Second
	if everything() {
		last = 3 * time.Minute
	}
	header(t)
	for _, handshakes := range []string{"on", "off"} {
		t.Run("handshakes "+handshakes, func(t *testing.T) {
			beside(t)
			attempt(t, "root", "listeners, handshakes "+handshakes, func(t *testing.T) row {
				s := newScene(t, viewer{name: "root"}, program, "--all", "--handshakes="+handshakes)
				churn := attack{part: part{From: hostilePort, To: hostilePort + 1, PerSecond: 250, Threads: []string{"http-nio-18080-e"}}}
				churn.start(t, s.pods, s.java)
				return s.finish(t, s.stays(t, last))
			})
		})
	}
}

// beside lets an attack that takes its time wait beside others. Where the bounds of time are held it is alone.
func beside(t *testing.T) {
	t.Helper()
	if !everything() {
		t.Parallel()
	}
}

// warm is how long the heap takes to find its size: 25 s on two processors. What it takes until then is no growth.
const warm = 30 * time.Second

// mostGrown is how much more an agent may have in use at the end than in the middle. The histories of seventy listeners, which
// fill for a quarter of an hour, take 1 MiB of it in half of that; a MiB that leaks each minute is seen where it lasts as long.
const mostGrown = 6 << 20

// stays holds that the agent does not grow for that long, and says what it used. each is shown what it says meanwhile.
func (s *scene) stays(t *testing.T, last time.Duration, each ...func(*document)) string {
	t.Helper()
	time.Sleep(warm)
	used, begin := s.cpu(t), time.Now()
	follow := func(until time.Duration) int64 { // of its last minute: while an incident is open it has more
		least := int64(math.MaxInt64)
		for time.Since(begin) < until {
			d := s.look(t)
			for _, show := range each {
				show(d)
			}
			time.Sleep(time.Second)
			if until-time.Since(begin) < time.Minute {
				least = min(least, s.inUse(t))
			}
		}
		return min(least, s.inUse(t))
	}
	half := follow(last / 2) // beside other work the heap takes longer to find its size
	grown := follow(last) - half
	share := float64(s.cpu(t)-used) / float64(time.Since(begin))
	most := int64(mostGrown)
	if last < 2*time.Minute {
		most *= 2 // in less than a minute nothing may have been read right after a collection
	}
	require.Less(t, grown, most, "bytes in use that it has grown by, from %d", half)
	return fmt.Sprintf("%.1f %% of a core, %d KiB more in use at the end", 100*share, grown>>10)
}

// inUse is the memory that the agent's runtime has, without what of its heap is free. At its least of a minute, right after a collection, it
// shows what is remembered. What is resident does not: a third of the heap is garbage before a collection, and once a minute
// the program's file is given back and comes again within a second, so that its least depends by 8 MiB on when it is read.
func (a *agent) inUse(t *testing.T) int64 {
	t.Helper()
	of := a.metrics(t, "go_memstats_sys_bytes", "go_memstats_heap_sys_bytes", "go_memstats_heap_alloc_bytes")
	return int64(of[0] - of[1] + of[2])
}

// cpu is what the agent has used of processors, its children left out.
func (a *agent) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	require.NoError(t, err)
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+2:])
	var ticks int
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// nowResident is the agent's memory at this moment.
func (a *agent) nowResident(t *testing.T) int64 {
	t.Helper()
	return a.memory(t, "VmRSS:")
}
