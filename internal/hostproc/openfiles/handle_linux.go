package openfiles

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// listEvery is how often the open files are listed where the kernel does not
// count them: 8,400 take 8 to 25 ms.
const listEvery = time.Second

// Handle reads how many files a process has open and may have, through
// descriptors that are kept. It is for one goroutine at a time.
type Handle struct {
	fs     hostproc.FS
	pid    int
	dir    int // /proc/PID/fd, O_PATH: any user may ask for its size
	limits *procfile.Handle

	listed   int
	listedAt time.Time
}

// OpenHandle opens the files.
func OpenHandle(fs hostproc.FS, pid int) (*Handle, error) {
	dir, err := unix.Open(fs.Path(pid, "fd"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fs.Wrap(pid, "open files", err)
	}
	limits, err := procfile.OpenHandle(fs.Path(pid, "limits"), 2<<10)
	if err != nil {
		_ = unix.Close(dir)
		return nil, fs.Wrap(pid, "limits", err)
	}
	return &Handle{fs: fs, pid: pid, dir: dir, limits: limits}, nil
}

// Open is the number of open files, and how old it is: since Linux 6.2 it is of
// this moment (the size of /proc/PID/fd), before that of a listing that is made
// at most once a second.
func (k *Handle) Open(now time.Time) (n int, age time.Duration, err error) {
	if !k.fs.CountsOpenFiles() {
		return k.list(now)
	}
	var st unix.Stat_t
	if err := unix.Fstat(k.dir, &st); err != nil {
		return 0, 0, k.fs.Wrap(k.pid, "open files", err)
	}
	if st.Size == 0 { // the process has ended, or is a zombie
		return 0, 0, hostproc.ErrNoProcess
	}
	return int(st.Size), 0, nil
}

func (k *Handle) list(now time.Time) (n int, age time.Duration, err error) {
	if !k.listedAt.IsZero() && now.Sub(k.listedAt) < listEvery {
		return k.listed, now.Sub(k.listedAt), nil
	}
	n, err = procfile.CountNumbers(k.fs.Path(k.pid, "fd"))
	if err != nil {
		return 0, 0, k.fs.Wrap(k.pid, "open files", err)
	}
	k.listed, k.listedAt = n, now
	return n, 0, nil
}

// Limit is the soft RLIMIT_NOFILE; math.MaxInt stands for "unlimited".
func (k *Handle) Limit() (int, error) {
	data, err := k.limits.Read()
	if errors.Is(err, unix.ESRCH) {
		return 0, hostproc.ErrNoProcess
	}
	if err != nil {
		return 0, err
	}
	return parseFilesLimit(data)
}

// Close closes the descriptors.
func (k *Handle) Close() {
	_ = unix.Close(k.dir)
	_ = k.limits.Close()
}
