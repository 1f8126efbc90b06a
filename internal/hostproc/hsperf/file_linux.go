package hsperf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

const (
	// maxPerfData bounds what is read of a file that belongs to another user.
	// A JVM's is 32 kB unless -XX:PerfDataMemorySize says otherwise.
	maxPerfData = 1 << 20
	// maxMapped bounds how many mapped files are tried: a JVM has one.
	maxMapped = 16
)

// Read reads the performance data of a JVM once. It takes the permission to
// open /proc/PID/root and the file, which is its owner's alone. It waits for the
// process's memory map and for the file: it is for a process that one trusts.
func Read(fs hostproc.FS, pid int) (JVM, error) {
	p, err := fs.Process(pid)
	if err != nil {
		return JVM{}, err
	}
	h, err := fs.Handles(pid, p.StartTime)
	if err != nil {
		return JVM{}, err
	}
	defer h.Close()
	f, err := Open(h)
	if err != nil {
		return JVM{}, err
	}
	defer func() { _ = f.Close() }()
	return f.Read()
}

// Open finds the performance data of a JVM, in its own mount namespace and
// by the pid it sees itself. Its name alone is no proof: containers that share
// a /tmp all have a pid 1, and files of dead JVMs stay behind. So it is a file
// that the process has mapped, and no other is read: anybody may fill /tmp.
func Open(h *hostproc.Handles) (*File, error) {
	pid := h.Process.PID
	maps, err := h.Maps()
	if err := errors.Join(err, h.Root.Err); err != nil {
		return nil, err
	}
	mapped, err := mappedPerfData(maps, h.Process)
	if err != nil {
		return nil, fmt.Errorf("hostproc: maps of pid %d: %w", pid, err)
	}
	if len(mapped) == 0 {
		return nil, fmt.Errorf("hostproc: pid %d: %w", pid, ErrNoPerfData)
	}
	root, err := h.OpenRoot(hostproc.Agent)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := findPerfData(root, h.Process, mapped)
	if err != nil {
		return nil, fmt.Errorf("hostproc: performance data of pid %d: %w", pid, err)
	}
	return f, nil
}

// Adopt takes the performance data of a process from whoever opened it, and closes
// it when it is none: nothing is asked of its file system before that is known to answer.
func Adopt(fs hostproc.FS, key hostproc.ProcessKey, file *os.File) (*File, error) {
	f, err := adopt(fs, key, file)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("hostproc: performance data of pid %d: %w", key.PID, err)
	}
	return f, nil
}

func adopt(fs hostproc.FS, key hostproc.ProcessKey, file *os.File) (*File, error) {
	if err := fs.Admit(key.PID, file); err != nil {
		return nil, err
	}
	p, err := fs.Process(key.PID)
	if err != nil {
		return nil, err
	}
	if p.StartTime != key.StartTime {
		return nil, hostproc.ErrNoProcess
	}
	return newFile(file, p)
}

// Again opens the file once more, for another goroutine.
func (f *File) Again() (*File, error) {
	fd, err := unix.FcntlInt(f.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hostproc: %w", err)
	}
	return &File{file: os.NewFile(uintptr(fd), f.file.Name()), size: f.size}, nil
}

// File is the open file, which stays the JVMFile's.
func (f *File) File() *os.File { return f.file }

// File is the performance data of one JVM, found once and then read often.
// It outlives the process with its last values: close it when the process ends.
// It is for one goroutine at a time.
type File struct {
	file       *os.File
	size       int
	buf        []byte // once it is read
	safepoints safepointIndex
}

// Read reads the counters of this moment. The JVM writes them without a lock.
func (f *File) Read() (JVM, error) {
	n, err := f.file.ReadAt(f.buffer(), 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return JVM{}, fmt.Errorf("hostproc: %w", err)
	}
	jvm, err := parseJVM(f.buf[:n])
	if err != nil {
		return JVM{}, fmt.Errorf("hostproc: %q: %w", f.file.Name(), err)
	}
	return jvm, nil
}

// Safepoints reads the safepoints of this moment and nothing else, in one call
// and without allocating.
func (f *File) Safepoints(out *Safepoints) error {
	x := &f.safepoints
	if x.order != nil {
		if err := f.fill(x.end); err != nil {
			return err
		}
		if !x.stale(f.buf) {
			x.read(f.buf, out)
			return nil
		}
	}
	if err := f.fill(f.size); err != nil {
		return err
	}
	found, err := findSafepoints(f.buf)
	if err != nil {
		return fmt.Errorf("hostproc: %q: %w", f.file.Name(), err)
	}
	f.safepoints = found
	x.read(f.buf, out)
	return nil
}

// fill reads the first n bytes.
func (f *File) fill(n int) error {
	if _, err := f.file.ReadAt(f.buffer()[:n], 0); err != nil {
		return fmt.Errorf("hostproc: %w", err)
	}
	return nil
}

func (f *File) buffer() []byte {
	if f.buf == nil {
		f.buf = make([]byte, f.size)
	}
	return f.buf
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// findPerfData looks in /tmp, which is where a JVM puts the file whatever
// java.io.tmpdir says. Folders and files are not followed when they are
// symlinks, the way the JVM does it.
func findPerfData(r *hostproc.Root, p hostproc.Process, mapped []string) (*File, error) {
	var denied error
	for _, name := range mapped {
		f, err := openPerfData(r, "/tmp/"+name, p)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			denied = err
		}
	}
	if denied != nil {
		return nil, denied
	}
	return nil, ErrNoPerfData
}

func openPerfData(r *hostproc.Root, path string, p hostproc.Process) (*File, error) {
	f, err := r.NotLinked(path)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	jvm, err := newFile(f, p)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return jvm, nil
}

// newFile takes a file of an admitted file system that can be a process's
// performance data.
func newFile(f *os.File, p hostproc.Process) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxPerfData:
		return nil, fmt.Errorf("%d bytes: %w", info.Size(), hostproc.ErrMalformed)
	case !ok || !slices.Contains(p.UIDs[:], st.Uid):
		return nil, fmt.Errorf("belongs to another user: %w", ErrNoPerfData)
	}
	return &File{file: f, size: int(info.Size())}, nil
}

// mappedPerfData are the files of the process's own pid that it has mapped, as
// "hsperfdata_USER/PID": the user's name belongs to the process's own
// /etc/passwd. A file that was deleted is marked " (deleted)" in maps and so has
// another name.
func mappedPerfData(maps io.Reader, p hostproc.Process) ([]string, error) {
	var found []string
	lines := bufio.NewScanner(maps)
	for lines.Scan() && len(found) < maxMapped {
		_, name, ok := bytes.Cut(lines.Bytes(), []byte("/hsperfdata_"))
		if !ok {
			continue
		}
		user, pid, _ := strings.Cut(string(name), "/")
		if file := "hsperfdata_" + user + "/" + pid; pid == strconv.Itoa(p.InnerPID()) && !slices.Contains(found, file) {
			found = append(found, file)
		}
	}
	return found, lines.Err()
}
