package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/metronome"
)

// runChild is the life of the processes that make sockets, keep descriptors, or
// do nothing but tick. They obey one line at a time and answer each with one.
func runChild(args []string) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch args[0] {
	case "serve":
		err = serve(args[1:])
	case "dial":
		err = dial()
	case "hold":
		err = hold(args[1:])
	case "tick":
		err = tick(args[1:])
	case "metronome":
		err = emptyMetronomeLoop(args[1])
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench", strings.Join(args, " ")+":", err)
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

// serve listens on the ports of its arguments, on all addresses, in a fresh
// loopback where it has a network namespace of its own. "I N" accepts N
// connections on the I-th port.
func serve(args []string) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	var listeners []int
	for _, arg := range args {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		fd, err := listen(port)
		if err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
		listeners = append(listeners, fd)
	}
	return obey(func(n []int) error {
		for range n[1] {
			if _, _, err := unix.Accept4(listeners[n[0]], unix.SOCK_CLOEXEC); err != nil {
				return err
			}
		}
		return nil
	})
}

func listen(port int) (int, error) {
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
	return fd, unix.Listen(fd, 4096)
}

// dial obeys "PORT N": opens N connections to the port and keeps them. Each port
// has a loopback address of its own, so that they do not share source ports.
func dial() error {
	return obey(func(n []int) error {
		address := [4]byte{127, 1, byte(n[0] >> 8), byte(n[0])}
		for i := range n[1] {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("socket %d: %w", i, err)
			}
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: n[0], Addr: address}); err != nil {
				return fmt.Errorf("connection %d to port %d: %w", i, n[0], err)
			}
		}
		return nil
	})
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

// tick is the empty loop that the agent's processor time is compared with. It
// reads the files of its further arguments at each tick.
func tick(args []string) error {
	interval, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for range time.Tick(interval) {
		for _, path := range args[1:] {
			if err := read(path, buffer); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyMetronomeLoop is the empty loop around the agent's own tick.
func emptyMetronomeLoop(interval string) error {
	every, err := time.ParseDuration(interval)
	if err != nil {
		return err
	}
	m, err := metronome.New(every)
	if err != nil {
		return err
	}
	for {
		if err := m.Wait(); err != nil {
			return err
		}
	}
}

func read(path string, buffer []byte) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = unix.Read(fd, buffer)
	return err
}
