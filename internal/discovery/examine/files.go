package examine

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// maxListed bounds the listing of one folder.
const maxListed = 10_000

// files are a process's files as it sees them itself, whatever mount namespace
// it lives in. What was read is remembered with its stamp, so that another
// examination can be compared with this one.
type files struct {
	root folder
	cwd  folder
	// dir is the working directory's path below root, "" where it cannot be
	// found; relative paths are then opened below cwd and cannot leave it.
	dir  string
	exe  string // the executable's path below root, "" where it is unknown
	seen map[location]stamp
}

// folder is a process's root or working directory, or why there is none.
type folder struct {
	*hostproc.Root
	err error
}

// location is a path below one of the two folders.
type location struct {
	inCwd bool
	name  string
}

// newFiles takes a process's root and working directory and the names behind its
// links.
func newFiles(root, cwd folder, h *hostproc.Handles) *files {
	f := &files{root: root, cwd: cwd, seen: map[location]stamp{}}
	f.exe = inside(h.RootName, h.ExeName)
	if dir := inside(h.RootName, h.CwdName); dir != "" && f.stamp(location{false, dir}).is(f.stamp(location{true, "."})) {
		f.dir = dir
	}
	return f
}

func (f *files) close() {
	for _, folder := range []folder{f.root, f.cwd} {
		if folder.err == nil {
			folder.Close()
		}
	}
}

// inside is the target of one of a process's links below its root, "" where it
// is unknown. Both are names of the process's own mount namespace; in a
// chroot both carry its path.
func inside(top, target string) string {
	if top == "" || target == "" || strings.HasSuffix(target, " (deleted)") {
		return ""
	}
	rest, ok := strings.CutPrefix(target+"/", strings.TrimSuffix(top, "/")+"/")
	if !ok {
		return ""
	}
	return path.Join("/", rest)
}

// is says whether two stamps are of one and the same file.
func (s stamp) is(t stamp) bool { return s.failed == "" && s == t }

func (f *files) locate(name string) location {
	switch {
	case path.IsAbs(name):
		return location{false, path.Clean(name)}
	case f.dir != "":
		return location{false, path.Join(f.dir, name)}
	}
	return location{true, path.Clean(name)}
}

func (f *files) folder(p location) folder {
	if p.inCwd {
		return f.cwd
	}
	return f.root
}

// Open opens a regular file.
func (f *files) Open(name string) (*os.File, error) {
	return f.open(name, (*hostproc.Root).Regular)
}

func (f *files) open(name string, how func(*hostproc.Root, string) (*os.File, error)) (*os.File, error) {
	p := f.locate(name)
	below := f.folder(p)
	if below.err != nil {
		return nil, below.err
	}
	file, err := how(below.Root, p.name)
	if err != nil {
		f.seen[p] = f.stamp(p)
		return nil, err
	}
	f.seen[p] = stampOf(file)
	return file, nil
}

// stamp takes the stamp of a path without opening what it names.
func (f *files) stamp(p location) stamp {
	below := f.folder(p)
	if below.err != nil {
		return failedStamp(below.err)
	}
	file, err := below.OpenPath(p.name)
	if err != nil {
		return failedStamp(err)
	}
	defer func() { _ = file.Close() }()
	return stampOf(file)
}

// ReadDir lists a folder, by name.
func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := f.open(name, (*hostproc.Root).Folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxListed)
	if len(entries) == maxListed {
		return nil, fmt.Errorf("%q has %d entries or more", name, maxListed)
	}
	if len(entries) == 0 && err != nil && err.Error() == "EOF" {
		err = nil
	}
	return entries, err
}

// writtenAfter are the files that were written after a given time.
func (f *files) writtenAfter(t time.Time) []string {
	var late []string
	for p, s := range f.seen {
		if s.modifiedAfter(t) {
			late = append(late, p.name)
		}
	}
	return late
}
