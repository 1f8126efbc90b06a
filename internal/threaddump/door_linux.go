package threaddump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// door is the JVM's /tmp, where it listens whatever java.io.tmpdir says
// (os::get_temp_directory). Links are not followed out of its root.
type door struct {
	jvm    *jvm
	folder *os.File
}

func (j *jvm) openDoor() (*door, error) {
	root, err := j.proc.OpenRoot(j.key.PID, "root", hostproc.Agent)
	if err != nil {
		return nil, refuse("its root folder cannot be opened: %v", err)
	}
	defer root.Close()
	folder, err := root.Folder("/tmp")
	if err != nil {
		return nil, refuse("its /tmp, where it would listen, cannot be opened: %v", err)
	}
	if _, err := j.same(); err != nil { // it was its own that was opened
		_ = folder.Close()
		return nil, err
	}
	return &door{jvm: j, folder: folder}, nil
}

func (d *door) close() { _ = d.folder.Close() }

// name is a file of the folder, by the id that the JVM sees itself.
func (d *door) name(prefix string) string { return prefix + strconv.Itoa(d.jvm.seen.InnerPID()) }

// errNobody says that nobody listens.
var errNobody = errors.New("nobody listens")

// connect connects to the JVM, and to nobody else: what listens there is a socket of
// the own user, and SO_PEERCRED, which the kernel took when listen was called, names
// the process. Containers that share a /tmp all have a process 1.
func (d *door) connect(ctx context.Context) (*net.UnixConn, error) {
	var st unix.Stat_t
	name := d.name(".java_pid")
	err := unix.Fstatat(int(d.folder.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNobody
	case err != nil:
		return nil, refuse("%s of its /tmp cannot be looked at: %v", name, err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != d.jvm.seen.UIDs[1]:
		return nil, refuse("%s of its /tmp is no socket of its own", name)
	}
	path := fmt.Sprintf("/proc/self/fd/%d/%s", d.folder.Fd(), name)
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EAGAIN):
		return nil, errNobody // a JVM that has ended left it behind, or it was removed
	case err != nil:
		return nil, refuse("its socket cannot be connected to: %v", err)
	}
	socket, ok := conn.(*net.UnixConn)
	if ok {
		err = d.verify(socket)
	}
	if err != nil || !ok {
		_ = conn.Close()
		return nil, err
	}
	return socket, nil
}

func (d *door) verify(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return refuse("%v", err)
	}
	var peer *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		peer, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return refuse("it is not known who listens on its socket: %v", err)
	}
	p := d.jvm.seen
	if int(peer.Pid) != p.PID || peer.Uid != p.UIDs[1] || peer.Gid != p.GIDs[1] {
		return refuse("another process listens on the socket in its /tmp (pid %d, uid %d)", peer.Pid, peer.Uid)
	}
	_, err = d.jvm.same()
	return err
}

// pollEvery is how often a socket is looked for that the JVM is about to make.
const pollEvery = 20 * time.Millisecond

// call makes the JVM listen, and connects.
func (d *door) call(ctx context.Context, settled time.Duration) (*net.UnixConn, error) {
	t, err := d.jvm.threads()
	if err != nil {
		return nil, refuse("%v", err)
	}
	// One that has begun to listen is not signalled: its socket is about to be there,
	// or was removed from its /tmp, and the signal would print to its output.
	signalled := false
	if !t.listener {
		if d.jvm.attachDisabled() {
			return nil, refuse("it does not let itself be asked (-XX:+DisableAttachMechanism)")
		}
		if _, err := d.jvm.ready(settled); err != nil {
			return nil, err
		}
		remove, err := d.announce()
		if err != nil {
			return nil, err
		}
		defer remove()
		if err := d.jvm.quit(ctx, settled); err != nil {
			return nil, err
		}
		signalled = true
	}
	for {
		conn, err := d.connect(ctx)
		if !errors.Is(err, errNobody) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			if signalled {
				return nil, tooLate(true)
			}
			return nil, refuse("it listens on a socket that is not in its /tmp any more").but("restart it, or keep .java_pid files out of what cleans /tmp")
		case <-time.After(pollEvery):
		}
	}
}

// announce writes the file that tells the JVM what the signal is for. It must be its
// user's (AttachListener::is_init_trigger).
func (d *door) announce() (remove func(), err error) {
	name := d.name(".attach_pid")
	folder := int(d.folder.Fd())
	fd, err := unix.Openat(folder, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) { // another program asks, or was ended while it did
		return func() {}, nil
	}
	if err != nil {
		return nil, refuse("the request cannot be written to its /tmp: %v", err)
	}
	_ = unix.Close(fd)
	return func() { _ = unix.Unlinkat(folder, name, 0) }, nil
}
