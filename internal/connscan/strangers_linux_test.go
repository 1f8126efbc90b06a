package connscan

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// The server that was there before holds a connection, and another user has more processes of its name than are searched.
func TestPredecessorBesideProcessesOfItsName(t *testing.T) {
	nettest.Root(t)
	dir, err := os.MkdirTemp("", "connscan") // another user cannot reach TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	name := filepath.Join(dir, "before")
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	text, err := os.ReadFile(sleep)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, text, 0o755))
	start := func(uid uint32, files ...*os.File) int {
		cmd := exec.CommandContext(t.Context(), name, "600")
		cmd.ExtraFiles = files
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL}
		proctest.Run(t, cmd)
		return cmd.Process.Pid
	}
	for range 2 * mostSearched {
		start(65534)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	held, err := l.Accept()
	require.NoError(t, err)
	file, err := held.(*net.TCPConn).File()
	require.NoError(t, err)
	pid := start(0, file)
	var stat syscall.Stat_t
	require.NoError(t, syscall.Fstat(int(file.Fd()), &stat))
	require.NoError(t, file.Close())
	require.NoError(t, held.Close())

	w := &facts.Watchlist{Watched: []facts.Watched{{Listening: &facts.Listening{
		ID: model.ListenerID{NetNS: 1}, Members: []sockdiag.Listener{{UID: 0}},
		Owner: &owner.Process{PID: os.Getpid(), Comm: "before"},
	}}}}
	w.Index()
	s := strangers{of: make(map[uint32]holder)}
	require.True(t, s.search(hostfs.Real(t), w, 1, time.Now(), []uint32{uint32(stat.Ino)}, hostproc.MostDescriptors), fmt.Sprint(s.of))
	require.Equal(t, holder{pid, "before"}, s.of[uint32(stat.Ino)])
}
