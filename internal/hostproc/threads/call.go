package threads

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// CallKind is what a thread is doing, by the system call it is in.
type CallKind int

// The kinds.
const (
	CallUnknown CallKind = iota // it could not be read
	CallRunning                 // none: it runs, or waits for a CPU
	CallAccept                  // accept, accept4
	CallPoll                    // poll, ppoll
	CallEpoll                   // epoll_wait and its like
	CallFutex                   // futex, waiting
	CallSleep                   // nanosleep, clock_nanosleep
	CallReceive                 // read, readv, pread64, recvfrom, recvmsg
	CallConnect                 // connect
	CallOpen                    // open, openat, openat2
	CallWrite                   // write, writev, pwrite64
	CallLock                    // fcntl with F_SETLKW, flock
	CallSync                    // fsync, fdatasync
	CallStat                    // stat, lstat, newfstatat, statx
	CallOther
)

// Call is the system call that a thread is blocked in (task/TID/syscall).
type Call struct {
	Kind CallKind
	// Timed: it returns by itself after some time. Not known for CallOther.
	Timed bool
	// FD is the descriptor of CallAccept, CallReceive, CallConnect and CallWrite.
	FD int
	// Polled is where in the process's memory the descriptor of CallPoll is written
	// (struct pollfd), 0 where there are several.
	Polled uint64
	// Futex is the address of CallFutex. OnStack: it lies in one of the frames
	// that the thread is in. Plain: it waits by FUTEX_WAIT, as for a mutex.
	Futex          uint64
	OnStack, Plain bool
}

// callNumbers are the system calls of one architecture; -1 for those it lacks.
type callNumbers struct {
	accept, accept4, futex             int
	poll, ppoll                        int
	epollWait, epollPwait, epollPwait2 int
	nanosleep, clockNanosleep          int
	read, readv, recvfrom, recvmsg     int
	pread64                            int
	connect                            int
	open, openat, openat2              int
	write, writev, pwrite64            int
	fcntl, flock, fsync, fdatasync     int
	stat, lstat, newfstatat, statx     int
}

// callsOf is the table of an architecture, by GOARCH: arch/x86/entry/syscalls/
// syscall_64.tbl, and include/uapi/asm-generic/unistd.h for the others.
func callsOf(goarch string) (callNumbers, bool) {
	switch goarch {
	case "amd64":
		return callNumbers{
			accept: 43, accept4: 288, futex: 202, poll: 7, ppoll: 271,
			epollWait: 232, epollPwait: 281, epollPwait2: 441, nanosleep: 35, clockNanosleep: 230,
			read: 0, readv: 19, recvfrom: 45, recvmsg: 47, connect: 42,
			open: 2, openat: 257, openat2: 437, write: 1, writev: 20, pwrite64: 18, pread64: 17,
			fcntl: 72, flock: 73, fsync: 74, fdatasync: 75, stat: 4, lstat: 6, newfstatat: 262, statx: 332,
		}, true
	case "arm64", "riscv64", "loong64":
		return callNumbers{
			accept: 202, accept4: 242, futex: 98, poll: -1, ppoll: 73,
			epollWait: -1, epollPwait: 22, epollPwait2: 441, nanosleep: 101, clockNanosleep: 115,
			read: 63, readv: 65, recvfrom: 207, recvmsg: 212, connect: 203,
			open: -1, openat: 56, openat2: 437, write: 64, writev: 66, pwrite64: 68, pread64: 67,
			fcntl: 25, flock: 32, fsync: 82, fdatasync: 83, stat: -1, lstat: -1, newfstatat: 79, statx: 291,
		}, true
	}
	return callNumbers{}, false
}

// parseCall reads a line of task/TID/syscall: "running", "-1 SP PC" (blocked,
// but in no call), or "NUMBER ARG0 … ARG5 SP PC".
func parseCall(line []byte, n callNumbers) (Call, error) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if string(line) == "running" {
		return Call{Kind: CallRunning}, nil
	}
	number, rest, _ := bytes.Cut(line, []byte{' '})
	if string(number) == "-1" {
		return Call{Kind: CallOther}, nil
	}
	nr, ok := procfile.Decimal(number)
	if !ok {
		return Call{}, fmt.Errorf("syscall %q: %w", line, hostproc.ErrMalformed)
	}
	var words [8]uint64 // six arguments, stack pointer, program counter
	for i := range words {
		if words[i], rest, ok = nextHex(rest); !ok {
			return Call{}, fmt.Errorf("syscall %q: %w", line, hostproc.ErrMalformed)
		}
	}
	if len(rest) > 0 {
		return Call{}, fmt.Errorf("syscall %q: %w", line, hostproc.ErrMalformed)
	}
	return n.call(nr, words), nil
}

func (n callNumbers) call(nr int, words [8]uint64) Call {
	switch nr {
	case n.accept, n.accept4:
		return Call{Kind: CallAccept, FD: int(int32(words[0]))}
	case n.futex:
		return futexCall(words)
	case n.poll:
		return Call{Kind: CallPoll, Timed: int32(words[2]) >= 0, Polled: polled(words)}
	case n.ppoll:
		return Call{Kind: CallPoll, Timed: words[2] != 0, Polled: polled(words)}
	case n.read, n.readv, n.pread64, n.recvfrom, n.recvmsg:
		return Call{Kind: CallReceive, FD: int(int32(words[0]))}
	case n.connect:
		return Call{Kind: CallConnect, FD: int(int32(words[0]))}
	case n.open, n.openat, n.openat2:
		return Call{Kind: CallOpen}
	case n.write, n.writev, n.pwrite64:
		return Call{Kind: CallWrite, FD: int(int32(words[0]))}
	case n.fcntl:
		if words[1] != setLockWait && words[1] != setOpenLockWait {
			return Call{Kind: CallOther}
		}
		return Call{Kind: CallLock}
	case n.flock:
		return Call{Kind: CallLock}
	case n.fsync, n.fdatasync:
		return Call{Kind: CallSync}
	case n.stat, n.lstat, n.newfstatat, n.statx:
		return Call{Kind: CallStat}
	case n.epollWait, n.epollPwait:
		return Call{Kind: CallEpoll, Timed: int32(words[3]) >= 0}
	case n.epollPwait2:
		return Call{Kind: CallEpoll, Timed: words[3] != 0}
	case n.nanosleep, n.clockNanosleep:
		return Call{Kind: CallSleep, Timed: true}
	}
	return Call{Kind: CallOther}
}

// The commands of fcntl that wait (F_SETLKW, F_OFD_SETLKW).
const (
	setLockWait     = 7
	setOpenLockWait = 38
)

// polled: a thread that waits for one socket polls one descriptor.
func polled(words [8]uint64) uint64 {
	if words[1] != 1 {
		return 0
	}
	return words[0]
}

const (
	futexWait       = 0
	futexWaitBitset = 9
	futexFlags      = 0x80 | 0x100 // FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME
	// frames is how far above the stack pointer a futex counts as on the stack.
	frames = 16 << 10
)

// futexCall: glibc's condition variables wait by FUTEX_WAIT_BITSET with and
// without FUTEX_CLOCK_REALTIME (0x189, 0x89), older ones and musl's, mutexes and
// HotSpot's own barrier by FUTEX_WAIT (0x80). The fourth argument is the timeout,
// or null.
func futexCall(words [8]uint64) Call {
	operation := int(words[1]) &^ futexFlags
	if operation != futexWait && operation != futexWaitBitset {
		return Call{Kind: CallOther}
	}
	address, sp := words[0], words[6]
	return Call{
		Kind: CallFutex, Timed: words[3] != 0, Futex: address,
		OnStack: address >= sp && address-sp < frames, Plain: operation == futexWait,
	}
}

// nextHex reads " 0x1f" or "0x1f".
func nextHex(b []byte) (v uint64, rest []byte, ok bool) {
	b = bytes.TrimPrefix(b, []byte{' '})
	word, rest, _ := bytes.Cut(b, []byte{' '})
	digits, ok := bytes.CutPrefix(word, []byte("0x"))
	if !ok || len(digits) == 0 || len(digits) > 16 {
		return 0, b, false
	}
	for _, c := range digits {
		d, ok := hexDigit(c)
		if !ok {
			return 0, b, false
		}
		v = v<<4 | uint64(d)
	}
	return v, rest, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// String is for messages.
func (k CallKind) String() string {
	names := [...]string{"unknown", "running", "accept", "poll", "epoll", "futex", "sleep", "receive", "connect", "open", "write", "lock", "sync", "stat", "other"}
	if int(k) >= len(names) {
		return strconv.Itoa(int(k))
	}
	return names[k]
}
