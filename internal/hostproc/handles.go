package hostproc

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// maxWords bounds a command line and an environment; MAX_ARG_STRLEN allows
	// one word of 128 KiB, and all of them a quarter of the stack's limit.
	maxWords = 1 << 20
	// maxMaps bounds the list of mappings; vm.max_map_count is 65,530.
	maxMaps = 16 << 20
)

// Errors about a process whose files are not opened for it.
var (
	// ErrSetID says that a process has other rights than who started it, and whose
	// choice its command line and environment therefore are.
	ErrSetID = errors.New("it runs with other rights than who started it (set-user-ID or set-group-ID)")
	// ErrTooLong is a command line or environment that is not read to its end.
	ErrTooLong = errors.New("larger than what is read")
)

// Handles are what it takes privileges to open of a process, opened and not yet
// read: the privileges can be given up in between, and reading may wait for ever
// (the memory behind cmdline and environ can be mapped from a file system that
// does not answer). What could not be opened has an error in its place.
type Handles struct {
	Process Process
	Groups  []uint32
	Root    Handle // O_PATH
	Cwd     Handle // O_PATH
	// The names behind the links root, cwd and exe, "" where they cannot be read.
	RootName, CwdName, ExeName string

	stat, cmdline, environ, maps Handle
	mountinfo                    [2]Handle // our own and the process's
	foreign                      bool      // it is in another user namespace
}

// Handle is a file that was opened, or why it was not.
type Handle struct {
	File *os.File
	Err  error
}

func (h Handle) close() {
	if h.File != nil {
		_ = h.File.Close()
	}
}

// Handles opens what there is of a process with that start time. A process with
// other rights than who started it has none but its public files.
func (fs FS) Handles(pid int, startTime uint64) (*Handles, error) {
	h := &Handles{stat: openHandle(fs, pid, "stat"), cmdline: openHandle(fs, pid, "cmdline"), maps: openHandle(fs, pid, "maps")}
	h.mountinfo[0].File, h.mountinfo[0].Err = os.Open("/proc/self/mountinfo")
	h.mountinfo[1] = openHandle(fs, pid, "mountinfo")
	h.foreign = fs.foreign(pid)
	before, denied := fs.rightsOf(pid)
	for name, handle := range map[string]*Handle{"root": &h.Root, "cwd": &h.Cwd} {
		if handle.Err = denied; denied == nil {
			handle.File, handle.Err = FindFolder(fs.Path(pid, name))
			handle.Err = fs.Wrap(pid, name, handle.Err)
		}
	}
	if h.environ.Err = denied; denied == nil {
		h.environ = openHandle(fs, pid, "environ")
	}
	for name, link := range map[string]*string{"root": &h.RootName, "cwd": &h.CwdName, "exe": &h.ExeName} {
		*link, _ = os.Readlink(fs.Path(pid, name))
	}
	err := h.identify(fs, pid, startTime, before) // last: all of it was this process's
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func openHandle(fs FS, pid int, name string) Handle {
	f, err := os.Open(fs.Path(pid, name))
	return Handle{f, fs.Wrap(pid, name, err)}
}

// identify says whose the handles are. A process that has become another user's
// since they were opened (execve of a set-user-ID program leaves its id and start
// time) has none.
func (h *Handles) identify(fs FS, pid int, startTime uint64, before rights) (err error) {
	if h.Process, err = fs.Process(pid); err != nil {
		return err
	}
	if h.Process.StartTime != startTime {
		return fs.Wrap(pid, "stat", ErrNoProcess)
	}
	now, denied := fs.rightsOf(pid)
	if denied == nil && !now.equal(before) {
		denied = ErrSetID
	}
	if denied != nil {
		h.refuse(denied)
	}
	h.Process.UIDs, h.Process.GIDs, h.Groups = now.uids, now.gids, now.groups
	return nil
}

// refuse takes away what only the process's own user may name.
func (h *Handles) refuse(err error) {
	for _, handle := range []*Handle{&h.Root, &h.Cwd, &h.environ} {
		if handle.Err == nil {
			handle.close()
			*handle = Handle{Err: err}
		}
	}
}

// Close closes everything.
func (h *Handles) Close() {
	for _, handle := range []Handle{h.Root, h.Cwd, h.stat, h.cmdline, h.environ, h.maps, h.mountinfo[0], h.mountinfo[1]} {
		handle.close()
	}
}

// Same says that the process still runs. The handle is one of this process,
// never of another with its number.
func (h *Handles) Same() bool {
	_, err := h.stat.File.ReadAt(make([]byte, 16), 0)
	return err == nil || errors.Is(err, io.EOF)
}

// Words are the command line.
func (h *Handles) Words() ([]string, error) { return h.cmdline.words() }

// Environ is the environment as "NAME=value".
func (h *Handles) Environ() ([]string, error) { return h.environ.words() }

func (h Handle) words() ([]string, error) {
	if h.Err != nil {
		return nil, h.Err
	}
	text, err := io.ReadAll(io.LimitReader(h.File, maxWords+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxWords:
		return nil, fmt.Errorf("%w (%d bytes)", ErrTooLong, maxWords)
	}
	return splitWords(text), nil
}

// Maps is the process's list of mappings from its beginning, as much as is read of it.
func (h *Handles) Maps() (io.Reader, error) {
	if h.maps.Err != nil {
		return nil, h.maps.Err
	}
	if _, err := h.maps.File.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.LimitReader(h.maps.File, maxMaps), nil
}

// Mounts are those of the process and our own; see FS.mounts.
func (h *Handles) Mounts(reader Reader) (*Mounts, error) {
	var lists []io.Reader
	for _, handle := range h.mountinfo {
		if handle.Err != nil {
			continue
		}
		if _, err := handle.File.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		lists = append(lists, handle.File)
	}
	return ReadMounts(reader, h.foreign, lists...)
}
