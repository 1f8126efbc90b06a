package hostproc

import (
	"fmt"
	"os"
)

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
