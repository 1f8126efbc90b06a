package rig

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// RunChild is the life of the children: a program that starts some calls it first with
// its own arguments. They obey one line of numbers at a time and answer each with
// one.
func RunChild(args []string) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch args[0] {
	case "serve":
		err = serve(args[1:])
	case "dial":
		err = dial()
	case "press":
		err = press()
	case "hold":
		err = hold(args[1:])
	case "spin":
		err = spin(args[1:])
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, strings.Join(args, " ")+":", err)
		return 1, true
	}
	return 0, true
}

// obey answers each line of numbers with what do returns for them, until the
// parent closes the pipe.
func obey(do func(n []int) error) error {
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var numbers []int
		for field := range strings.FieldsSeq(lines.Text()) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		if err := do(numbers); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return lines.Err()
}

// serve listens with the backlog of its first argument on the ports of the others,
// on all addresses, in a fresh loopback where it has a network namespace of its
// own. "I N" accepts N connections on the I-th port and keeps them, "I N 1" reads
// the request of each besides; "I 0" accepts what is queued and closes it.
func serve(args []string) error {
	if err := proctest.LoopbackUp(); err != nil {
		return err
	}
	backlog, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var listeners []int
	for _, arg := range args[1:] {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		fd, err := listen(port, backlog)
		if err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
		listeners = append(listeners, fd)
	}
	return obey(func(n []int) error {
		if n[1] == 0 {
			return drain(listeners[n[0]])
		}
		for range n[1] {
			fd, _, err := unix.Accept4(listeners[n[0]], unix.SOCK_CLOEXEC)
			if err != nil {
				return err
			}
			if len(n) > 2 {
				if _, err := unix.Read(fd, make([]byte, len(heldRequest))); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// heldRequest is what clients send: with it read and not answered a connection is in
// service.
const heldRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// drain accepts until nothing waits.
func drain(listener int) error {
	for {
		waiting := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if n, err := unix.Poll(waiting, 0); n == 0 || err != nil {
			return err
		}
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != nil {
			return err
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
}

func listen(port, backlog int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet6{Port: port}); err != nil {
		return -1, err
	}
	return fd, unix.Listen(fd, backlog)
}

// dial obeys "PORT N": opens N connections to the port and keeps them; "PORT N 1"
// sends a request on each. Each port
// has a loopback address of its own, so that they do not share source ports.
func dial() error {
	return obey(func(n []int) error {
		for i := range n[1] {
			fd, err := connect(n[0], 0)
			if err == nil && len(n) > 2 {
				_, err = unix.Write(fd, []byte(heldRequest))
			}
			if err != nil {
				return fmt.Errorf("connection %d to port %d: %w", i, n[0], err)
			}
		}
		return nil
	})
}

// press obeys "PORT N": N more clients that wait for as long as it takes, their
// SYNs repeated by the kernel; "PORT 0" lets all of its clients give up.
func press() error {
	var clients []int
	return obey(func(n []int) error {
		for i := range n[1] {
			fd, err := connect(n[0], unix.SOCK_NONBLOCK)
			if err != nil && !errors.Is(err, unix.EINPROGRESS) {
				return fmt.Errorf("client %d of port %d: %w", i, n[0], err)
			}
			clients = append(clients, fd)
		}
		for n[1] == 0 && len(clients) > 0 {
			_ = unix.Close(clients[0])
			clients = clients[1:]
		}
		return nil
	})
}

func connect(port, flags int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return -1, err
	}
	address := [4]byte{127, 1, byte(port >> 8), byte(port)}
	return fd, unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: address})
}

// hold keeps N descriptors, half of them sockets: a haystack.
func hold(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for i := range n {
		if i%2 == 0 {
			_, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		} else {
			_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
	}
	return obey(func([]int) error { return nil })
}

// spin keeps processors busy with as many threads as its argument says.
func spin(args []string) error {
	threads, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(threads + 1)
	for range threads {
		go func() {
			for { //nolint:staticcheck // that is what it is for
			}
		}()
	}
	return obey(func([]int) error { return nil })
}
