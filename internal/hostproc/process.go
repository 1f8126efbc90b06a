package hostproc

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// UserHZ is the unit of StartTime, in ticks a second: USER_HZ, which is 100 on
// every architecture Go runs on.
const UserHZ = 100

// Process is what any user may know of a process, unless proc is mounted with
// hidepid.
type Process struct {
	PID       int
	Comm      string // the main thread's name, cut to 15 characters
	State     byte   // R, S, D, T, t, Z, X or I (field 3 of stat)
	Dumping   bool   // it is ended by a signal, and its core dump is written ("CoreDumping" of status, Linux 4.15)
	StartTime uint64 // in ticks of UserHZ since boot (field 22 of stat)
	Threads   int
	CPUTime   time.Duration // of all its threads, also those that have ended (utime and stime of stat)
	// Used are bytes of memory that the kernel cannot take from it without swapping: anonymous and shared memory (RssAnon and
	// RssShmem of status, Linux 4.5), 0 where that is not known.
	Used uint64
	UIDs [4]uint32 // real, effective, saved, file system
	GIDs [4]uint32
	// NSpid are the process's ids from the pid namespace of the mount inwards;
	// the last one is what the process itself sees.
	NSpid []int
}

// Stopped is set for a process that SIGSTOP or a debugger halts.
func (p Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// Exited is set for a process that only waits for its parent to notice.
func (p Process) Exited() bool { return p.State == 'Z' || p.State == 'X' }

// InnerPID is the process's id in its own pid namespace: 1 for the main
// process of most containers.
func (p Process) InnerPID() int {
	if len(p.NSpid) == 0 { // kernels before 4.1 do not show it
		return p.PID
	}
	return p.NSpid[len(p.NSpid)-1]
}

// signaled is PF_SIGNALED of include/linux/sched.h, in field 9 of stat: a signal has ended it, and it may not be gone yet.
const signaled = 0x400

// Process reads stat and status of a process.
func (fs FS) Process(pid int) (Process, error) {
	proc, err := fs.proc.Proc(pid)
	if err != nil {
		return Process{}, fs.Wrap(pid, "status", err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return Process{}, fs.Wrap(pid, "stat", err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return Process{}, fs.Wrap(pid, "status", err)
	}
	if stat.State == "" {
		return Process{}, fmt.Errorf("hostproc: stat of pid %d: no state: %w", pid, ErrMalformed)
	}
	p := newProcess(stat, status)
	if stat.Flags&signaled != 0 { // else it is not, and need not be read
		dumping, err := fs.StatusLine(pid, "CoreDumping")
		p.Dumping = err == nil && string(dumping) == "1"
	}
	return p, nil
}

func newProcess(stat procfs.ProcStat, status procfs.ProcStatus) Process {
	p := Process{
		PID:       stat.PID,
		Comm:      stat.Comm,
		State:     stat.State[0],
		StartTime: stat.Starttime,
		Threads:   stat.NumThreads,
		CPUTime:   time.Duration(stat.UTime+stat.STime) * (time.Second / UserHZ),
		Used:      status.RssAnon + status.RssShmem,
		NSpid:     make([]int, 0, len(status.NSpids)),
	}
	for i := range p.UIDs {
		p.UIDs[i] = uint32(status.UIDs[i])
		p.GIDs[i] = uint32(status.GIDs[i])
	}
	for _, id := range status.NSpids {
		p.NSpid = append(p.NSpid, int(id))
	}
	return p
}

// Age is how long the process has been running at a given uptime.
func (p Process) Age(uptime time.Duration) time.Duration {
	return uptime - time.Duration(p.StartTime)*(time.Second/UserHZ)
}

// ProcessKey names a process uniquely since boot.
type ProcessKey struct {
	PID       int
	StartTime uint64 // field 22 of /proc/PID/stat, in clock ticks since boot
}
