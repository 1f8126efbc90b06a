package hostproc

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
)

const (
	// maxPerfData bounds what is read of a file that belongs to another user.
	// A JVM's is 32 kB unless -XX:PerfDataMemorySize says otherwise.
	maxPerfData = 1 << 20
	// maxMapped bounds how many mapped files are tried: a JVM has one.
	maxMapped = 16
)

// JVM reads the performance data of a JVM once. It takes the permission to
// open /proc/PID/root and the file, which is its owner's alone.
func (fs FS) JVM(pid int) (JVM, error) {
	f, err := fs.OpenJVM(pid)
	if err != nil {
		return JVM{}, err
	}
	defer func() { _ = f.Close() }()
	return f.Read()
}

// JVMFile is the performance data of one JVM, found once and then read often.
// It outlives the process with its last values: close it when the process ends.
// It is for one goroutine at a time.
type JVMFile struct {
	file       *os.File
	buf        []byte
	safepoints safepointIndex
}

// Read reads the counters of this moment. The JVM writes them without a lock.
func (f *JVMFile) Read() (JVM, error) {
	n, err := f.file.ReadAt(f.buf, 0)
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
func (f *JVMFile) Safepoints(out *Safepoints) error {
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
	if err := f.fill(len(f.buf)); err != nil {
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
func (f *JVMFile) fill(n int) error {
	if _, err := f.file.ReadAt(f.buf[:n], 0); err != nil {
		return fmt.Errorf("hostproc: %w", err)
	}
	return nil
}

// Close closes the file.
func (f *JVMFile) Close() error { return f.file.Close() }

// OpenJVM finds the performance data of a JVM, in its own mount namespace and
// by the pid it sees itself. Its name alone is no proof: containers that share
// a /tmp all have a pid 1, and files of dead JVMs stay behind. So it is a file
// that the process has mapped, and no other is read: anybody may fill /tmp.
func (fs FS) OpenJVM(pid int) (*JVMFile, error) {
	p, err := fs.Process(pid)
	if err != nil {
		return nil, err
	}
	maps, err := os.Open(fs.path(pid, "maps"))
	if err != nil {
		return nil, fs.wrap(pid, "maps", err)
	}
	defer func() { _ = maps.Close() }()
	mapped, err := mappedPerfData(io.LimitReader(maps, maxMaps), p)
	if err != nil {
		return nil, fs.wrap(pid, "maps", err)
	}
	if len(mapped) == 0 {
		return nil, fs.wrap(pid, "performance data", ErrNoPerfData)
	}
	root, err := fs.OpenRoot(pid, "root", Agent)
	if err != nil {
		return nil, fs.wrap(pid, "root", err)
	}
	defer root.Close()
	f, err := root.findPerfData(p, mapped)
	return f, fs.wrap(pid, "performance data", err)
}

// findPerfData looks in /tmp, which is where a JVM puts the file whatever
// java.io.tmpdir says. Folders and files are not followed when they are
// symlinks, the way the JVM does it.
func (r *Root) findPerfData(p Process, mapped []string) (*JVMFile, error) {
	var denied error
	for _, name := range mapped {
		f, err := r.openPerfData("/tmp/"+name, p)
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

func (r *Root) openPerfData(path string, p Process) (*JVMFile, error) {
	f, err := r.regular(path, false)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = checkPerfData(path, info, p)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &JVMFile{file: f, buf: make([]byte, info.Size())}, nil
}

func checkPerfData(path string, info os.FileInfo, p Process) error {
	if info.Size() > maxPerfData {
		return fmt.Errorf("%q: %d bytes: %w", path, info.Size(), ErrMalformed)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !slices.Contains(p.UIDs[:], st.Uid) {
		return fmt.Errorf("%q: belongs to another user: %w", path, ErrNoPerfData)
	}
	return nil
}

// mappedPerfData are the files of the process's own pid that it has mapped, as
// "hsperfdata_USER/PID": the user's name belongs to the process's own
// /etc/passwd. A file that was deleted is marked " (deleted)" in maps and so has
// another name.
func mappedPerfData(maps io.Reader, p Process) ([]string, error) {
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
