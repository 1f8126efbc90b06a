// Package memory reads what stands behind the memory of other processes: their cmdline,
// environ, maps and mem. A process can have its memory mapped from a file system that
// never answers (FUSE), and whoever reads it then waits without an end that SIGKILL
// could make. So a child process reads (Reader, Serve), in files that it is handed open: it has no
// right to open any. It has a deadline, and is given up beyond it.
package memory

import "os"

// Here reads in this very process: for tests. The product starts a process that reads;
// see Reader.
type Here struct{}

// ReadAt implements hostproc.Memory.
func (Here) ReadAt(_ string, f *os.File, at []int64, size int) ([][]byte, error) {
	out := make([][]byte, len(at))
	for i, offset := range at {
		part := make([]byte, size)
		if n, err := f.ReadAt(part, offset); err == nil || n > 0 {
			out[i] = part[:n]
		}
	}
	return out, nil
}
