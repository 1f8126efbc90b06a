package discovery

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// maxListed bounds the listing of one folder.
const maxListed = 10_000

// files are a process's files as it sees them itself, whatever mount namespace
// it lives in. What was looked at is remembered, so that a later look costs one
// stat a path.
type files struct {
	root string // /proc/PID/root
	cwd  string // /proc/PID/cwd
	// dir is the working directory's path below root, "" where it cannot be
	// told; relative paths are then opened below cwd and cannot leave it.
	dir   string
	exe   string // the executable's path below root, "" where it cannot be told
	seen  map[place]stamp
	opens int // files and folders opened so far
}

// place is a path below one of the two folders.
type place struct{ below, name string }

// newFiles takes the links /proc/PID/root and /proc/PID/cwd.
func newFiles(root, cwd string) *files {
	f := &files{root: root, cwd: cwd, seen: map[place]stamp{}}
	f.exe = inside(root, path.Join(path.Dir(root), "exe"))
	if dir := inside(root, cwd); dir != "" && lookAt(root, dir).is(lookAt(cwd, ".")) {
		f.dir = dir
	}
	return f
}

// inside is the target of one of a process's links below its root, "" where it
// cannot be told. Both are names of the process's own mount namespace; in a
// chroot both carry its path.
func inside(root, link string) string {
	top, err := os.Readlink(root)
	if err != nil {
		return ""
	}
	target, err := os.Readlink(link)
	if err != nil || strings.HasSuffix(target, " (deleted)") {
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

func (f *files) place(name string) place {
	switch {
	case path.IsAbs(name):
		return place{f.root, path.Clean(name)}
	case f.dir != "":
		return place{f.root, path.Join(f.dir, name)}
	}
	return place{f.cwd, path.Clean(name)}
}

// Open opens a regular file.
func (f *files) Open(name string) (*os.File, error) {
	return f.open(name, openRegular)
}

func (f *files) open(name string, how func(dir, name string) (*os.File, error)) (*os.File, error) {
	p := f.place(name)
	f.opens++
	file, err := how(p.below, p.name)
	if err != nil {
		f.seen[p] = lookAt(p.below, p.name)
		return nil, err
	}
	f.seen[p] = stampOf(file)
	return file, nil
}

// ReadDir lists a folder, by name.
func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := f.open(name, openFolder)
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

// changed are the paths that name another file now, or one at last, or none
// any more.
func (f *files) changed() []place {
	var out []place
	for p, was := range f.seen {
		if lookAt(p.below, p.name) != was {
			out = append(out, p)
		}
	}
	return out
}

// renew takes a changed path's new stamp, and says whether the content may be
// another, which a folder's or a mere change of owner is not. It is not ok for
// what could not be read before and may be readable now.
func (f *files) renew(p place) (content, ok bool) {
	was, is := f.seen[p], lookAt(p.below, p.name)
	if was.denied {
		return false, false
	}
	f.seen[p] = is
	return !was.sameContent(is) && !was.folder && !is.folder, true
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
