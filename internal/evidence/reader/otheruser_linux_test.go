package reader

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// sleeper is a thread of ours with an acceptor's name that sleeps in a futex.
func sleeper(t *testing.T) Listener {
	t.Helper()
	started, end := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if err := os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid()), []byte("http-nio-8080-A"), 0); err != nil {
			t.Error(err)
		}
		close(started)
		<-end
	}()
	<-started
	t.Cleanup(func() { close(end) })
	return Listener{PID: os.Getpid(), Port: 8080}
}

// TestOfAnotherUser: without any permission the acceptor's system call is not
// known, nor are safepoints. That it slept on while connections waited is.
func TestOfAnotherUser(t *testing.T) {
	mine, err := json.Marshal(sleeper(t))
	require.NoError(t, err)
	nobody, theirs := nettest.AsNobody(t, string(mine))
	if !nobody {
		return
	}
	var of Listener
	require.NoError(t, json.Unmarshal([]byte(theirs), &of))
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	r := Open(hostfs.Real(t), jvmOf(t, of.PID), of, c.now)
	defer r.Close()
	var track evidence.Track
	var j evidence.Judgement
	for range 22 {
		got := r.Read()
		require.Equal(t, "permission denied", got.Missing[evidence.SubjectAcceptor])
		require.Equal(t, "permission denied", got.Missing[evidence.SubjectSafepoints])
		require.Equal(t, evidence.Asleep, got.Acceptor.Activity)
		require.Equal(t, evidence.Known(false), got.Stopped)
		require.True(t, got.Files.Known)
		require.True(t, got.FilesLimit.Known)
		got.Queued = evidence.Known(3)
		j = track.Judge(got, evidence.Phases{}, causes.OfMoment)
		c.at = c.at.Add(100 * time.Millisecond)
	}
	require.Equal(t, model.CauseMaxConnections, j.Cause)
	require.True(t, j.Weak)
	require.Len(t, j.Missing, 2)
}
