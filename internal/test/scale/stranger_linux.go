package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// runShortLived is the life of H4's stranger: a listener of another program that
// overflows and closes. It says how long it lived.
func runShortLived(args []string) (code int, ok bool) {
	if len(args) == 0 || args[0] != "short-lived" {
		return 0, false
	}
	if err := shortLived(); err != nil {
		fmt.Fprintln(os.Stderr, "short-lived:", err)
		return 1, true
	}
	fmt.Println("ready")
	return 0, true
}

func shortLived() error {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	address := &unix.SockaddrInet4{Port: port + 1, Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(listener, address); err != nil {
		return err
	}
	if err := unix.Listen(listener, 1); err != nil {
		return err
	}
	for range 20 {
		client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		_ = unix.Connect(client, address) // EINPROGRESS: the queue holds two of them
	}
	time.Sleep(50 * time.Millisecond) // shorter than the agent looks for new listeners
	return unix.Close(listener)
}

// stranger is H4: short-lived listeners of another program overflow next to a
// server that has nothing to do.
func (s *scale) stranger(ctx context.Context) error {
	l := limits{maxConnections: 20, acceptCount: 10}
	one, err := startServer(ctx, unix.CLONE_NEWNET, l, 1)
	if err != nil {
		return err
	}
	defer one.stop()
	agent, err := s.startAgent(ctx, append(l.flags(), pids([]*server{one})...)...)
	if err != nil {
		return err
	}
	defer agent.Kill()
	t, err := newTruth(one)
	if err != nil {
		return err
	}
	defer func() { _, _ = t.counters.Close(), t.conn.Close() }()
	statuses := map[string]int{}
	var seen published
	for i := range 50 {
		if i < 10 {
			other, err := rig.StartBeside(ctx, one.PID(), "short-lived")
			if err != nil {
				return err
			}
			other.Stop()
		}
		now, err := look(ctx, agent)
		if err != nil {
			return err
		}
		seen = now.by[one.netns]
		statuses[seen.status]++
		time.Sleep(troublePoll)
	}
	if err := t.look(); err != nil {
		return err
	}
	dropped := t.dropped()
	s.report.add(
		row{
			Scenario: "H4", What: "a stranger's short-lived listeners overflow beside an idle server: its status", Budget: "ok throughout",
			Ours: fmt.Sprint(statuses), Met: len(statuses) == 1 && statuses["ok"] > 0 && dropped > 0,
		},
		row{
			Scenario: "H4", What: "dropped packets of the namespace, all accounted for", Budget: count(int(dropped)),
			Ours: count(int(seen.drops)), Met: seen.drops == dropped && dropped > 0,
		})
	return nil
}
