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

	"golang.org/x/sys/unix"
)

const (
	// maxPerfData bounds what is read of a file that belongs to another user.
	// A JVM's is 32 kB unless -XX:PerfDataMemorySize says otherwise.
	maxPerfData = 1 << 20
	// maxTmpNames bounds the search in a /tmp that somebody has filled.
	maxTmpNames = 1 << 16
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
	file *os.File
	buf  []byte
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

// Close closes the file.
func (f *JVMFile) Close() error { return f.file.Close() }

// OpenJVM finds the performance data of a JVM, in its own mount namespace and
// by the pid it sees itself. Its name alone is no proof: containers that share
// a /tmp all have a pid 1, and files of dead JVMs stay behind. So the process
// must have the file mapped, too.
func (fs FS) OpenJVM(pid int) (*JVMFile, error) {
	p, err := fs.Process(pid)
	if err != nil {
		return nil, err
	}
	root, err := fs.openRoot(pid)
	if err != nil {
		return nil, fs.wrap(pid, "root", err)
	}
	defer root.Close()
	mapped, err := fs.mappedPerfData(pid)
	if err != nil {
		return nil, fs.wrap(pid, "maps", err)
	}
	f, err := root.findPerfData(p, mapped)
	return f, fs.wrap(pid, "performance data", err)
}

// findPerfData looks in the folder of every user, as the user's name belongs
// to the process's own /etc/passwd. Folders and files are not followed when
// they are symlinks, the way the JVM does it.
func (r *processRoot) findPerfData(p Process, mapped func(string) bool) (*JVMFile, error) {
	dirs, err := r.perfDirs()
	if err != nil {
		return nil, err
	}
	var denied error
	for _, dir := range dirs {
		name := dir + "/" + strconv.Itoa(p.InnerPID())
		if !mapped(name) {
			continue
		}
		f, err := r.openPerfData("/tmp/"+name, p)
		if err == nil {
			return f, nil
		}
		denied = err
	}
	if denied != nil {
		return nil, denied
	}
	return nil, ErrNoPerfData
}

// perfDirs lists hsperfdata_USER folders of /tmp, which is where a JVM puts
// them whatever java.io.tmpdir says.
func (r *processRoot) perfDirs() ([]string, error) {
	tmp, err := r.open("/tmp", unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = tmp.Close() }()
	var dirs []string
	for seen := 0; seen < maxTmpNames; {
		names, err := tmp.Readdirnames(512)
		if len(names) == 0 {
			return dirs, endOfFile(err)
		}
		seen += len(names)
		for _, name := range names {
			if strings.HasPrefix(name, "hsperfdata_") {
				dirs = append(dirs, name)
			}
		}
	}
	return dirs, nil
}

func (r *processRoot) openPerfData(path string, p Process) (*JVMFile, error) {
	f, err := r.regular(path, unix.O_NOFOLLOW)
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

// mappedPerfData says which hsperfdata files the process has mapped. A file
// that was deleted is marked " (deleted)" in maps and so has another name.
func (fs FS) mappedPerfData(pid int) (func(name string) bool, error) {
	f, err := os.Open(fs.path(pid, "maps"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var found []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if _, name, ok := bytes.Cut(lines.Bytes(), []byte("/hsperfdata_")); ok {
			found = append(found, "hsperfdata_"+string(name))
		}
	}
	return func(name string) bool { return slices.Contains(found, name) }, lines.Err()
}
