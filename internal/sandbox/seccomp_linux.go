package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h). Arguments are 64 bits wide;
// the lower half comes first on both architectures.
const (
	callNumber       = 0
	callArchitecture = 4
	callArguments    = 16
)

// writing are the flags of openat(2) that could change anything.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND | unix.O_TMPFILE&^unix.O_DIRECTORY

// calls are what one kind of child may call beyond what each does.
type calls int

const (
	opensFiles calls = iota
	isHanded         // has no right to open any file
)

// filterCalls lets only the system calls through that reading and the Go
// runtime take; all others fail with EPERM. clone3 fails with ENOSYS: a caller that
// knows it (a C library's threads) falls back to clone, whose flags can be seen.
func filterCalls(kind calls) error {
	arch, known := architecture()
	if !known {
		return nil // an architecture that nothing is proven on
	}
	program, err := bpf.Assemble(callFilter(kind, arch, uint32(os.Getpid())))
	if err != nil {
		return fmt.Errorf("sandbox: seccomp: %w", err)
	}
	filter := make([]unix.SockFilter, len(program))
	for i, op := range program {
		filter[i] = unix.SockFilter{Code: op.Op, Jt: op.Jt, Jf: op.Jf, K: op.K}
	}
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(prog)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("sandbox: seccomp: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("sandbox: seccomp: %w: thread %d", ErrPowers, thread)
	}
	return nil
}

func architecture() (uint32, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

// The answers of the filter.
const (
	permit = unix.SECCOMP_RET_ALLOW
	deny   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// callFilter is the filter as a program. A call of another architecture's table,
// whose numbers mean something else, is denied.
func callFilter(kind calls, arch, pid uint32) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArchitecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: deny},
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
	}
	program = append(program, rule(unix.SYS_CLONE, argument(0, bpf.JumpBitsSet, unix.CLONE_THREAD)...)...)
	program = append(program, rule(unix.SYS_TGKILL, argument(0, bpf.JumpEqual, pid)...)...)
	program = append(program, rule(unix.SYS_CLONE3, bpf.RetConstant{Val: absent})...)
	numbers := harmless()
	switch kind {
	case opensFiles:
		program = append(program, rule(unix.SYS_OPENAT, argument(2, bpf.JumpBitsNotSet, writing)...)...)
		numbers = append(numbers, unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_GETXATTR)
	case isHanded:
		numbers = append(numbers, unix.SYS_RECVMSG)
	}
	for _, number := range numbers {
		program = append(program, rule(number, bpf.RetConstant{Val: permit})...)
	}
	return append(program, bpf.RetConstant{Val: deny})
}

// rule is what is done for one system call; it ends in an answer.
func rule(number uint32, do ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(do))}}, do...)
}

// argument permits a call whose argument passes a test.
func argument(n uint32, test bpf.JumpTest, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArguments + 8*n, Size: 4},
		bpf.JumpIf{Cond: test, Val: value, SkipTrue: 1},
		bpf.RetConstant{Val: deny},
		bpf.RetConstant{Val: permit},
	}
}

// harmless are the calls that read what is open, or that the Go runtime and a C
// library's threads make for themselves.
func harmless() []uint32 {
	return []uint32{
		unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_LSEEK,
		unix.SYS_FSTAT, unix.SYS_FSTATFS, unix.SYS_FCNTL,
		unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK,
		unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
		unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_GETRANDOM, unix.SYS_MEMBARRIER, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	}
}
