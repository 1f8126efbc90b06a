package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// confinement is what a container's runtime, or systemd, leaves a program.
type confinement struct {
	ID   int    // user and group
	Caps []int  // the only ones
	Base string // an empty folder, on which its root is made
	Args []string
}

// start runs tcpdiag in a network namespace with those rights alone, until the
// test ends. The processes that it sees are the machine's.
func (c confinement) start(t *testing.T, ns *nettest.NS) (log func() string) {
	t.Helper()
	c.Base = t.TempDir()
	require.NoError(t, os.Chmod(c.Base, 0o755))
	text, err := json.Marshal(c)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer out.Close()
	cmd := ns.Command(program, "-test.run", "^TestConfinedHere$")
	cmd.Env = append(os.Environ(), "TCPDIAG_CONFINED="+string(text))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	proctest.Run(t, cmd)
	return func() string {
		text, err := os.ReadFile(out.Name())
		return fmt.Sprintf("%s%v", text, err)
	}
}

// TestConfinedHere becomes tcpdiag.
func TestConfinedHere(t *testing.T) {
	var c confinement
	if json.Unmarshal([]byte(os.Getenv("TCPDIAG_CONFINED")), &c) != nil {
		t.Skip("a part of other tests")
	}
	runtime.LockOSThread() // its rights are those that exec passes on
	c.enterRoot(t)
	c.giveUp(t)
	require.NoError(t, unix.Exec("/usr/bin/tcpdiag", append([]string{"tcpdiag"}, c.Args...), []string{"PATH=/usr/bin"}))
}

// enterRoot makes a root with nothing but the program, its configuration, /proc and
// /sys, and /var/lib, which alone can be written to.
func (c confinement) enterRoot(t *testing.T) {
	t.Helper()
	at := func(path string) string { return filepath.Join(c.Base, path) }
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	require.NoError(t, unix.Mount("none", c.Base, "tmpfs", 0, "mode=755"))
	for _, dir := range []string{"proc", "sys", "usr/bin", "var/lib", "etc/tcpdiag"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o755))
	}
	config, err := os.ReadFile(shipped + "tcpdiag.yml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(at("etc/tcpdiag/tcpdiag.yml"), config, 0o644))
	require.NoError(t, os.WriteFile(at("usr/bin/tcpdiag"), nil, 0o755))
	require.NoError(t, unix.Mount(tcpdiag, at("usr/bin/tcpdiag"), "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount("proc", at("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
	require.NoError(t, unix.Mount("/sys", at("sys"), "", unix.MS_BIND|unix.MS_REC, ""))
	require.NoError(t, unix.Mount("none", at("var/lib"), "tmpfs", 0, "mode=777"))
	require.NoError(t, unix.Mount("", c.Base, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	require.NoError(t, unix.Chroot(c.Base))
	require.NoError(t, os.Chdir("/"))
	require.ErrorIs(t, os.WriteFile("/x", nil, 0o600), unix.EROFS)
}

// giveUp leaves the thread the confinement's rights.
func (c confinement) giveUp(t *testing.T) {
	t.Helper()
	for capability := range unix.CAP_LAST_CAP + 1 {
		if slices.Contains(c.Caps, capability) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil {
			require.ErrorIs(t, err, unix.EINVAL, "this kernel does not have it")
		}
	}
	require.NoError(t, unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0))
	require.NoError(t, unix.Setgroups(nil))
	require.NoError(t, unix.Setresgid(c.ID, c.ID, c.ID))
	require.NoError(t, unix.Setresuid(c.ID, c.ID, c.ID))
	if c.ID != 0 {
		c.keep(t)
	}
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// keep makes the capabilities ambient, as AmbientCapabilities= does: a user other
// than root has them after exec in no other way.
func (c confinement) keep(t *testing.T) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	for _, capability := range c.Caps {
		set := &sets[capability/32]
		set.Permitted |= 1 << (capability % 32)
		set.Effective, set.Inheritable = set.Permitted, set.Permitted
	}
	require.NoError(t, unix.Capset(&header, &sets[0]))
	for _, capability := range c.Caps {
		require.NoError(t, unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(capability), 0, 0))
	}
}

// wget asks a server in a network namespace.
func wget(ns *nettest.NS, url string) ([]byte, error) {
	return ns.Command("/bin/busybox", "wget", "-q", "-O", "-", url).CombinedOutput()
}
