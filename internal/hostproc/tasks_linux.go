package hostproc

import (
	"bytes"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// ThreadNames calls fn with each thread's id and name (task/TID/comm: at most
// 15 characters). Any user may read them. A thread that ends meanwhile is left
// out. fn must not keep tid numbers for longer than the process lives.
func (fs FS) ThreadNames(pid int, fn func(tid int, comm string)) error {
	var comm string
	err := fs.EachTask(pid, "/comm", func(tid int, data []byte) error {
		name := bytes.TrimSuffix(data, []byte{'\n'})
		// A pool's names are equal once cut, so most need no new string.
		if string(name) != comm {
			comm = string(name)
		}
		fn(tid, comm)
		return nil
	})
	return fs.Wrap(pid, "thread names", err)
}

// EachTask reads one small file of every thread. Of a process that has more than MostThreads it is ErrManyThreads, after these.
func (fs FS) EachTask(pid int, file string, fn func(tid int, data []byte) error) error {
	return fs.eachTaskOf(pid, MostThreads, file, fn)
}

func (fs FS) eachTaskOf(pid, most int, file string, fn func(tid int, data []byte) error) error {
	dir, err := procfile.OpenFolder(fs.Path(pid, "task"))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	var small [128]byte
	name := make([]byte, 0, 32)
	read, number := false, 0
	err = procfile.EachNumber(dir, make([]byte, 8<<10), func(tid int) error {
		if number++; number > most {
			return ErrManyThreads
		}
		name = append(strconv.AppendInt(name[:0], int64(tid), 10), file...)
		data, err := procfile.ReadAt(dir, string(name), small[:])
		if procfile.Ended(err) {
			return nil
		}
		if err != nil {
			return err
		}
		read = true
		return fn(tid, data)
	})
	if err == nil && !read { // the kernel lacks the file, or the process just went
		return unix.ENOENT
	}
	return err
}

// PIDs lists the processes of this mount, those that hidepid lets us see.
func (fs FS) PIDs() ([]int, error) {
	dir, err := procfile.OpenFolder(fs.mount)
	if err != nil {
		return nil, fmt.Errorf("hostproc: %q: %w", fs.mount, err)
	}
	defer func() { _ = unix.Close(dir) }()
	pids := make([]int, 0, 512)
	err = procfile.EachNumber(dir, make([]byte, 16<<10), func(pid int) error {
		pids = append(pids, pid)
		return nil
	})
	return pids, err
}
