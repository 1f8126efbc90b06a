package passthrough

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal is not late as long as nobody has heard that the command has ended: its exit code comes first.
func TestLateSignal(t *testing.T) {
	own := make(chan os.Signal, 1)
	signal.Notify(own, syscall.SIGTERM) // this process is not ended by one
	defer signal.Stop(own)
	c, err := Start([]string{"sh", "-c", "exit 3"})
	require.NoError(t, err)
	defer c.Close()
	time.Sleep(2 * sameAs)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	select {
	case <-c.Late:
		require.Fail(t, "it is late before the end is known")
	case <-time.After(100 * time.Millisecond):
	}
	require.Equal(t, 3, <-c.Ended)
	require.Eventually(t, func() bool {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		return len(c.Late) == 1
	}, time.Minute, 10*time.Millisecond)
}
