package hostproc

import (
	"fmt"
	"os"
)

// Counting is what kernels before 6.2 offer: open files are listed.
func (fs FS) Counting() FS {
	fs.fdCount = false
	return fs
}

// OpenRegular opens a file by the absolute path it has for the process, in
// whatever mount namespace that is; see Root.
func (fs FS) OpenRegular(pid int, path string) (*os.File, error) {
	root, err := fs.OpenRoot(pid, "root", Agent)
	if err != nil {
		return nil, fs.Wrap(pid, "root", err)
	}
	defer root.Close()
	f, err := root.Regular(path)
	if err != nil {
		return nil, fmt.Errorf("hostproc: %q of pid %d: %w", path, pid, err)
	}
	return f, nil
}
