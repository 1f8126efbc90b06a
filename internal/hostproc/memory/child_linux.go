package memory

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is a started one. It may stand still for ever, and then cannot be killed.
type child struct {
	process *os.Process
	socket  *net.UnixConn
	ended   chan struct{}
	idle    *time.Timer // of one that is free
}

// startChild starts a child, and waits until it is ready.
func startChild(cmd *exec.Cmd, until time.Time) (*child, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs, ours := os.NewFile(uintptr(ends[0]), "memory"), os.NewFile(uintptr(ends[1]), "memory")
	defer func() { _, _ = theirs.Close(), ours.Close() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	c := &child{socket: conn.(*net.UnixConn), ended: make(chan struct{})}
	cmd.ExtraFiles = []*os.File{theirs}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := c.start(cmd); err != nil {
		_ = c.socket.Close()
		return nil, fmt.Errorf("memory: %w", err)
	}
	_ = c.socket.SetReadDeadline(until)
	if _, err := c.socket.Read(make([]byte, 1)); err != nil {
		c.end()
		return nil, fmt.Errorf("memory: what reads it does not start: %w", err)
	}
	return c, nil
}

// start leaves a thread behind that waits for the child: the kernel kills that one with
// the thread that started it.
func (c *child) start(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(c.ended)
		}
	}()
	return <-started
}

// hasEnded says so of one that was killed while it was idle, say: the next is as good.
func (c *child) hasEnded() bool {
	select {
	case <-c.ended:
		_ = c.socket.Close()
		return true
	default:
		return false
	}
}

// end has a child end, and does not wait for it.
func (c *child) end() {
	_ = c.socket.Close()
	_ = c.process.Kill()
}

// ask sends a file and the addresses to read in it: how much at each, and where.
func (c *child) ask(f *os.File, at []int64, size int, until time.Time) ([][]byte, error) {
	request := make([]byte, 0, 4+8*len(at))
	request = binary.NativeEndian.AppendUint32(request, uint32(size))
	for _, offset := range at {
		request = binary.NativeEndian.AppendUint64(request, uint64(offset))
	}
	_ = c.socket.SetDeadline(until)
	if _, _, err := c.socket.WriteMsgUnix(request, unix.UnixRights(int(f.Fd())), nil); err != nil {
		return nil, err
	}
	answer := make([]byte, len(at)*(4+size)+1)
	n, err := c.socket.Read(answer)
	if err != nil {
		return nil, err
	}
	return split(answer[:n], len(at), size)
}
