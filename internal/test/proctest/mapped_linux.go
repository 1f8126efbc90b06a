package proctest

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PolledFD is the descriptor of a socket that a process of the mode "mapped" polls. Its
// number stands where PollFD has it, in memory that is mapped from a file.
const PolledFD = 77

// PollFD is a struct pollfd of it.
func PollFD() []byte { return []byte{PolledFD, 0, 0, 0, byte(unix.POLLIN), 0, 0, 0} }

// PlayMapped maps a file where a thread of that name polls, and says where. It returns when
// the thread waits.
func PlayMapped(path, name string) (at uintptr, err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	page, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return 0, err
	}
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Dup3(sockets[0], PolledFD, 0)
	}
	if err != nil {
		return 0, err
	}
	at = uintptr(unsafe.Pointer(&page[0]))
	polls := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := os.WriteFile("/proc/thread-self/comm", []byte(name), 0o600)
		polls <- err
		for err == nil {
			_, _, _ = unix.Syscall6(unix.SYS_PPOLL, at, 1, 0, 0, 0, 0)
		}
	}()
	if err := <-polls; err != nil {
		return 0, err
	}
	return at, within(func() bool { return waitsIn(name, unix.SYS_PPOLL) })
}

// waitsIn says whether a thread of this process and that name is in a system call.
func waitsIn(name string, call int) bool {
	calls, _ := filepath.Glob("/proc/self/task/*/syscall")
	for _, path := range calls {
		comm, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		line, _ := os.ReadFile(path)
		if strings.HasPrefix(name, strings.TrimSpace(string(comm))) && strings.HasPrefix(string(line), strconv.Itoa(call)+" ") {
			return true
		}
	}
	return false
}

func within(ready func() bool) error {
	for range 6000 {
		if ready() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("not within a minute")
}

// Blocked are the threads of a process that wait and cannot be interrupted.
func Blocked(pid int) (n int) {
	tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	for _, task := range tasks {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + task.Name() + "/stat")
		_, rest, _ := strings.Cut(string(text), ") ")
		if strings.HasPrefix(rest, "D") {
			n++
		}
	}
	return n
}
