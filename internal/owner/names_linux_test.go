package owner

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// What a user finds who may not read descriptors.
func TestFindByThreadNames(t *testing.T) {
	proctest.NeedRoot(t)
	const tomcatUser, otherUser, lonelyUser = 54322, 54323, 54324
	named := start(t, childSpec{Listen: true, Comm: "java", Threads: []string{"http-nio-PORT-exec-1"}}, proctest.AsUser(tomcatUser))
	lost := start(t, childSpec{Listen: true, Threads: []string{"https-jsse-nio-8443-exec-1"}}, proctest.AsUser(tomcatUser))
	plain := start(t, childSpec{Listen: true}, proctest.AsUser(tomcatUser))
	lonely := start(t, childSpec{Listen: true, Threads: []string{"https-jsse-nio-8443-exec-1"}}, proctest.AsUser(lonelyUser))
	elsewhere := start(t, childSpec{NetNS: true, Listen: true, Threads: []string{"http-nio-PORT-exec-1"}})
	someoneElse := named.Socket
	someoneElse.Inode, someoneElse.UID = 4294967290, otherUser
	foreign := elsewhere.Socket
	foreign.Inode = 4294967291 // a listener of ours on the port that a container uses, too
	told := foreign
	told.Inode = 4294967293
	told.Net, _ = newCounting(t, "/proc").NetID(elsewhere.PID()) // the container's own

	r := findAs(t, childSpec{
		PID:     named.PID(),
		Sockets: []Socket{named.Socket, lost.Socket, plain.Socket, lonely.Socket, someoneElse, foreign, told},
	}, proctest.AsNobody)
	require.Len(t, r.Found, 3)
	require.Equal(t, elsewhere.PID(), r.Found[told.Inode].PID, "in its own namespace")
	p := r.Found[named.Inode]
	require.Equal(t, named.PID(), p.PID)
	require.Equal(t, "java", p.Comm)
	require.True(t, p.ByThreadName)
	require.Equal(t, lonely.PID(), r.Found[lonely.Inode].PID, "the only process of its user")
	require.True(t, r.Found[lonely.Inode].ByThreadName)
	for _, c := range []*child{named, lost, plain, lonely, elsewhere} {
		require.Equal(t, "permission", r.Denied[c.PID()])
	}
	require.Equal(t, "permission", r.HeldIs)
	require.Empty(t, r.Held)
}

func TestLostPortIsOnTheCommandLine(t *testing.T) {
	proctest.NeedRoot(t)
	const user = 54325
	first := start(t, childSpec{Listen: true, Threads: []string{"https-jsse-nio-8443-exec-1"}}, proctest.AsUser(user))
	spec := childSpec{Threads: []string{"https-jsse-nio-8443-exec-1"}}
	second := start(t, spec, proctest.AsUser(user), withArgs("--server.port=8443"))
	r := findAs(t, childSpec{Sockets: []Socket{first.Socket, {Inode: 4294967292, Port: 8443, UID: user}}}, proctest.AsNobody)
	require.Len(t, r.Found, 1)
	require.Equal(t, second.PID(), r.Found[4294967292].PID)
}

// The same user may read them: nothing is denied that matters.
func TestFindAsTheSameUser(t *testing.T) {
	proctest.NeedRoot(t)
	c := start(t, childSpec{Listen: true}, proctest.AsNobody)
	r := findAs(t, childSpec{PID: c.PID(), Sockets: []Socket{c.Socket}}, proctest.AsNobody)
	require.Equal(t, c.PID(), r.Found[c.Inode].PID)
	require.False(t, r.Found[c.Inode].ByThreadName)
	require.Empty(t, r.Denied, "the socket has a proven owner")
	require.Contains(t, r.Held, c.Inode)
}

// The same user with another group may list the descriptors and no more, as a
// sidecar whose runAsGroup is missing: that is denied, not nothing found.
func TestFindAsTheSameUserOfAnotherGroup(t *testing.T) {
	proctest.NeedRoot(t)
	c := start(t, childSpec{Listen: true, Comm: "java", Threads: []string{"http-nio-PORT-exec-1"}}, proctest.AsNobody)
	r := findAs(t, childSpec{PID: c.PID(), Sockets: []Socket{c.Socket}}, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody - 1}}
	})
	require.Equal(t, c.PID(), r.Found[c.Inode].PID)
	require.True(t, r.Found[c.Inode].ByThreadName)
	require.Equal(t, "permission", r.Denied[c.PID()])
	require.Equal(t, "permission", r.HeldIs)
}

func TestHiddenProcesses(t *testing.T) {
	proctest.NeedRoot(t)
	c := start(t, childSpec{Listen: true, Threads: []string{"http-nio-PORT-exec-1"}})
	dir, err := os.MkdirTemp("/tmp", "owner-test-")
	require.NoError(t, err)
	defer func() { _ = os.Remove(dir) }()
	require.NoError(t, os.Chmod(dir, 0o755))
	r := findAs(t, childSpec{HideIn: dir, PID: c.PID(), Sockets: []Socket{c.Socket}}, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	})
	require.Empty(t, r.Found)
	require.Equal(t, "invisible", r.Denied[0])
	require.Equal(t, "invisible", r.HeldIs)
}
