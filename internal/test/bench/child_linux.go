package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// runChild is the life of the processes that make sockets, keep descriptors, or
// do nothing but tick.
func runChild(args []string) (code int, ok bool) {
	if code, ok := rig.RunChild(args); ok || len(args) == 0 {
		return code, ok
	}
	var err error
	switch args[0] {
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
