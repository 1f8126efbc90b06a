// Package openfiles reads how many files a process has open and may have, and which
// of a sample of them are sockets.
package openfiles

import (
	"bytes"
	"fmt"
	"math"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Count is the number of files the process has open. Since Linux 6.2 the
// size of /proc/PID/fd is that number, in one call and for any user; older
// kernels need the folder counted, which takes the permission to read it.
//
// procfs decides by the size it finds for each process, and so counts (and
// fails to, without permission) where a process really has no files.
func Count(fs hostproc.FS, pid int) (int, error) {
	if !fs.CountsOpenFiles() {
		n, err := procfile.CountNumbers(fs.Path(pid, "fd"))
		return n, fs.Wrap(pid, "open files", err)
	}
	info, err := os.Stat(fs.Path(pid, "fd"))
	if err != nil {
		return 0, fs.Wrap(pid, "open files", err)
	}
	return int(info.Size()), nil
}

// Limit is the soft RLIMIT_NOFILE of the process: the limit that
// accept(2) meets as EMFILE. math.MaxInt stands for "unlimited".
func Limit(fs hostproc.FS, pid int) (int, error) {
	proc, err := fs.Procfs().Proc(pid)
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
		return 0, fmt.Errorf("limits without open files: %w", hostproc.ErrMalformed)
	}
	soft, _, _ := bytes.Cut(value, []byte{' '})
	if string(soft) == "unlimited" {
		return math.MaxInt, nil
	}
	n, ok := procfile.Decimal(soft)
	if !ok {
		return 0, fmt.Errorf("limits with %q open files: %w", soft, hostproc.ErrMalformed)
	}
	return n, nil
}
