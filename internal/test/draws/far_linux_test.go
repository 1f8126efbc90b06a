package draws

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// far is a network namespace beyond a pair of devices.
type far struct {
	name      string
	ns, ours  *os.File
	nearestTo string // the address at this end
}

func newFar(c *rig.Case) *far {
	f := &far{name: fmt.Sprint("drawn-", os.Getpid()), nearestTo: "10.77.0.1"}
	c.Do("ip", "netns", "add", f.name)
	c.Do("ip", "link", "add", "near", "type", "veth", "peer", "name", "out", "netns", f.name)
	c.Do("ip", "address", "add", f.nearestTo+"/24", "dev", "near")
	c.Do("ip", "link", "set", "near", "up")
	c.Do("ip", "-n", f.name, "address", "add", "10.77.0.2/24", "dev", "out")
	c.Do("ip", "-n", f.name, "link", "set", "out", "up")
	for path, file := range map[string]**os.File{"/run/netns/" + f.name: &f.ns, "/proc/self/ns/net": &f.ours} {
		opened, err := os.Open(path)
		c.Must(err)
		*file = opened
	}
	return f
}

// close removes it; sockets that are open there live on.
func (f *far) close() {
	_ = exec.Command("ip", "netns", "delete", f.name).Run()
	_ = exec.Command("ip", "link", "delete", "near").Run()
	_, _ = f.ns.Close(), f.ours.Close()
}

// socket is a TCP socket there; where f is nil, here.
func (f *far) socket() (int, error) {
	if f == nil {
		return tcpSocket()
	}
	runtime.LockOSThread()
	if err := unix.Setns(int(f.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return -1, err
	}
	fd, err := tcpSocket()
	if back := unix.Setns(int(f.ours.Fd()), unix.CLONE_NEWNET); back != nil {
		return fd, back // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return fd, err
}

func tcpSocket() (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}
