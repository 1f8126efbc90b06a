package threaddump

import (
	"context"
	"crypto/rand"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// virtual asks for the virtual threads, which a thread dump has only while they run:
// the JVM writes all threads to a file (Thread.dump_to_file, since JDK 21). The file is
// a pipe in a folder made for it, so that the file system keeps nothing of it, however
// many threads there are. No thread has to stand still for longer than for its own frames.
func (d *door) virtual(ctx context.Context) (*groups, error) {
	p, err := d.newPipe()
	if err != nil {
		return nil, err
	}
	defer p.remove()
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
		_ = p.out.SetReadDeadline(deadline)
	}
	g := newGroups()
	read := make(chan error, 1)
	go func() {
		cut, err := parseVirtual(p.out, g.add)
		g.stacks.Cut = cut
		if err == nil { // what is beyond a bound is read, too: the JVM is not to fail at it
			_, err = io.Copy(io.Discard, p.out)
		}
		read <- err
	}()
	answer, err := request(conn, "jcmd", "Thread.dump_to_file -overwrite -format=plain "+p.path)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(answer, lineLength))
	}
	_ = p.in.Close() // what was written can be read to its end
	if e := <-read; err == nil && e != nil {
		err = failed(e)
	}
	return g, err
}

// scheduler asks for the carriers of the virtual threads, which JDKs before 24 refuse.
func (d *door) scheduler(ctx context.Context) (*model.VirtualScheduler, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	answer, err := request(conn, "jcmd", "Thread.vthread_scheduler")
	if err != nil {
		return nil, err
	}
	return parseScheduler(answer)
}

// pipe is a named pipe in the JVM's /tmp. When its folder is gone, a JVM that comes
// late finds nothing to write to, and makes no file.
type pipe struct {
	door    *door
	folder  string
	path    string // as the JVM sees it
	in, out *os.File
}

func (d *door) newPipe() (*pipe, error) {
	p := &pipe{door: d, folder: d.name(".tcpdiag_") + "_" + rand.Text()}
	p.path = "/tmp/" + p.folder + "/threads"
	parent := int(d.folder.Fd())
	if err := unix.Mkdirat(parent, p.folder, 0o700); err != nil {
		return nil, refuse("no folder can be made in its /tmp: %v", err)
	}
	err := unix.Mkfifoat(parent, p.folder+"/threads", 0o600)
	if err == nil {
		p.out, err = d.openPipe(p.folder, unix.O_RDONLY)
	}
	if err == nil {
		p.in, err = d.openPipe(p.folder, unix.O_WRONLY)
	}
	if err != nil {
		p.remove()
		return nil, refuse("no pipe can be made in its /tmp: %v", err)
	}
	return p, nil
}

func (d *door) openPipe(folder string, mode int) (*os.File, error) {
	fd, err := unix.Openat(int(d.folder.Fd()), folder+"/threads", mode|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "threads"), nil
}

// remove removes it before it is closed: nothing opens it in between.
func (p *pipe) remove() {
	parent := int(p.door.folder.Fd())
	_ = unix.Unlinkat(parent, p.folder+"/threads", 0)
	_ = unix.Unlinkat(parent, p.folder, unix.AT_REMOVEDIR)
	for _, f := range []*os.File{p.in, p.out} {
		if f != nil {
			_ = f.Close()
		}
	}
}
