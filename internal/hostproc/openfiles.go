package hostproc

import (
	"bytes"
	"fmt"
	"math"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// OpenFiles is the number of files the process has open. Since Linux 6.2 the
// size of /proc/PID/fd is that number, in one call and for any user; older
// kernels need the folder counted, which takes the permission to read it.
//
// procfs decides by the size it finds for each process, and so counts (and
// fails to, without permission) where a process really has no files.
func (fs FS) OpenFiles(pid int) (int, error) {
	if !fs.fdCount {
		n, err := procfile.CountNumbers(fs.Path(pid, "fd"))
		return n, fs.Wrap(pid, "open files", err)
	}
	info, err := os.Stat(fs.Path(pid, "fd"))
	if err != nil {
		return 0, fs.Wrap(pid, "open files", err)
	}
	return int(info.Size()), nil
}

// CountsOpenFiles reports whether OpenFiles asks the kernel for the number, which
// takes no longer for many files than for few.
func (fs FS) CountsOpenFiles() bool { return fs.fdCount }

// OpenFilesLimit is the soft RLIMIT_NOFILE of the process: the limit that
// accept(2) meets as EMFILE. math.MaxInt stands for "unlimited".
func (fs FS) OpenFilesLimit(pid int) (int, error) {
	proc, err := fs.proc.Proc(pid)
	if err != nil {
		return 0, fs.Wrap(pid, "limits", err)
	}
	limits, err := proc.Limits()
	if err != nil {
		return 0, fs.Wrap(pid, "limits", err)
	}
	return int(min(limits.OpenFiles, math.MaxInt)), nil
}

// parseFilesLimit takes the soft limit of the line "Max open files  SOFT  HARD
// files" of /proc/PID/limits.
func parseFilesLimit(data []byte) (int, error) {
	value, ok := procfile.ValueOf(data, []byte("Max open files"))
	if !ok {
		return 0, fmt.Errorf("limits without open files: %w", ErrMalformed)
	}
	soft, _, _ := bytes.Cut(value, []byte{' '})
	if string(soft) == "unlimited" {
		return math.MaxInt, nil
	}
	n, ok := procfile.Decimal(soft)
	if !ok {
		return 0, fmt.Errorf("limits with %q open files: %w", soft, ErrMalformed)
	}
	return n, nil
}
