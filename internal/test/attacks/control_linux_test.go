package attacks

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/metronome"
)

// control is a process that does nothing but tick as fast as the agent samples:
// what keeps it from doing so is the machine, and no fault of the agent's.
type control struct{ longest atomic.Int64 }

func startControl(t *testing.T) *control {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{(&part{Control: true}).variable()}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &control{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			gap, _ := strconv.ParseInt(strings.TrimSpace(lines.Text()), 10, 64)
			c.longest.Store(max(c.longest.Load(), gap))
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		_ = cmd.Wait()
	})
	return c
}

// gap is the longest time between two ticks so far.
func (c *control) gap() time.Duration { return time.Duration(c.longest.Load()) }

// tick prints each gap that is longer than the ones before.
func tick() error {
	m, err := metronome.New(10 * time.Millisecond)
	if err != nil {
		return err
	}
	var longest time.Duration
	for last := time.Now(); ; {
		if err := m.Wait(); err != nil {
			return err
		}
		now := time.Now()
		if gap := now.Sub(last); gap > longest {
			longest = gap
			fmt.Println(int64(longest))
		}
		last = now
	}
}
