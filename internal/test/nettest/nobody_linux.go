package nettest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// asNobody marks the second process of AsNobody.
const asNobody = "TCPDIAG_TEST_AS_NOBODY"

// AsNobody runs the calling test a second time in a process of user and group
// nobody, and answers true there. In the first, which needs root, it answers
// false once that process has passed the test; arg reaches the second.
func AsNobody(tb testing.TB, arg string) (nobody bool, passed string) {
	tb.Helper()
	if v, ok := os.LookupEnv(asNobody); ok {
		return true, v
	}
	Root(tb)
	dir, err := os.MkdirTemp("", "nobody") // TempDir's parent is root's alone
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(tb, os.Chmod(dir, 0o755))
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(tb, err)
	require.NoError(tb, os.WriteFile(dir+"/test", program, 0o755))
	cmd := exec.CommandContext(tb.Context(), dir+"/test", "-test.run=^"+tb.Name()+"$", "-test.v", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), asNobody+"="+arg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(tb, err, "%s", out)
	require.Contains(tb, string(out), "--- PASS: "+tb.Name())
	return false, arg
}
