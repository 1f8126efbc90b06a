package threads

import (
	"slices"
	"strings"
)

// Workers are the threads of a process that handle the requests of its
// connectors, as their names show them. It is for one goroutine at a time.
type Workers struct {
	PID     int
	TIDs    []int // the pollers' last
	Room    *Room // nil: none
	pollers int   // of TIDs
	// threads is how many the process had when they were listed (the links of
	// its task folder).
	threads int
	sockets map[int]uint32 // inodes by descriptor, as they were when a worker waited there
	files   []int          // task/TID/syscall of each, those that are open
	calls   []numbered     // of the latest reading
	owner   string         // whose memory it is
	// Unread is why the latest Calls did not read what its threads poll, nil where it did.
	Unread error
}

// numbered is the call of the worker at a place of the list.
type numbered struct {
	at int
	Call
}

// Room is how many more of the workers' files may stay open between two readings, those
// of all processes together: opening and closing them took three of the eight
// milliseconds for 1,000 (BenchmarkCallsOfWorkers), but one that is open has a page of
// the kernel's memory.
type Room struct{ Files int }

// IsWorker reports whether a thread of that name handles the requests of a
// connector on one of the ports. Where a long port has cut off the role, the
// acceptor and the poller count as well: their calls (accept, epoll) show them. names are
// how those of other connectors begin: of one that has its threads from an <Executor>
// (StandardThreadExecutor.namePrefix), or whose port is not in the names.
func IsWorker(comm string, ports []uint16, names []string) bool {
	for _, name := range names {
		if name != "" && strings.HasPrefix(comm, name[:min(len(name), commLength)]) {
			return true
		}
	}
	scheme, rest, _ := strings.Cut(comm, "-")
	if scheme != "http" && scheme != "https" && scheme != "ajp" {
		return false
	}
	port, tail := portIn(rest)
	return port != 0 && slices.Contains(ports, port) && (tail == "" || tail[0] == 'e')
}

// WorkerCall is the system call that a worker is in. Socket is the inode of the
// socket that it waits for, 0 where it waits for none or that cannot be read.
type WorkerCall struct {
	Call
	Socket uint32
	Poller bool // it is no worker, but the thread that hands requests to them
}

// IsPoller reports whether a thread of that name hands requests to the workers of a connector on
// one of the ports.
func IsPoller(comm string, ports []uint16) bool {
	scheme, rest, _ := strings.Cut(comm, "-")
	if scheme != "http" && scheme != "https" && scheme != "ajp" {
		return false
	}
	port, tail := portIn(rest)
	return port != 0 && slices.Contains(ports, port) && tail != "" && tail[0] == 'P'
}
