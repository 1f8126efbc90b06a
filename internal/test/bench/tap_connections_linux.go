package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// hurryRate is how many connections are opened a second, for hurrySeconds.
const hurryRate, hurrySeconds = 10_000, 20

// tapUnderConnections runs two agents beside the same connections, one of which
// follows their handshakes, and one of an earlier program that does, if there is one.
func (b *bench) tapUnderConnections(ctx context.Context) error {
	programs := []struct{ path, mode string }{{b.Tcpdiag, "off"}, {b.Tcpdiag, "on"}}
	if b.Before != "" {
		programs = append(programs, struct{ path, mode string }{b.Before, "on"})
	}
	agents, before, used := make([]*rig.Agent, len(programs)), make([]time.Duration, len(programs)), make([]time.Duration, len(programs))
	for i, p := range programs {
		a, err := rig.StartAgent(ctx, p.path, "--port", strconv.Itoa(watchedPort), "--handshakes", p.mode)
		if err != nil {
			return err
		}
		defer a.Kill()
		agents[i] = a
	}
	for i, a := range agents {
		var err error
		if before[i], err = rig.CPUTime(a.Process.Pid); err != nil {
			return err
		}
	}
	n, took, err := hurry()
	if err != nil {
		return err
	}
	for i, a := range agents {
		now, err := rig.CPUTime(a.Process.Pid)
		if err != nil {
			return err
		}
		used[i] = now - before[i]
	}
	perSecond := func(i int) string { return percent(used[i].Seconds() / float64(n) * hurryRate) }
	note := fmt.Sprintf("of a core; by the time for each of %s connections, opened at %s/s", count(n), count(int(float64(n)/took.Seconds())))
	b.report.add(row{
		What: fmt.Sprintf("agent's processor time at %s new connections a second", count(hurryRate)), Budget: reported,
		Limit: perSecond(0), Ours: perSecond(1), Note: note,
	})
	if b.Before != "" {
		b.report.add(row{
			What: "the same, beside an earlier program's that follows them, too", Budget: reported,
			Limit: perSecond(2), Ours: perSecond(1), Note: note,
		})
	}
	return b.tapGaps(ctx, agents, n)
}

// tapGaps compares the longest time between two samples of both agents.
func (b *bench) tapGaps(ctx context.Context, agents []*rig.Agent, n int) error {
	var gaps [2]time.Duration
	var connected float64
	for i, a := range agents[:2] {
		seconds, err := a.Metric(ctx, "tcpdiag_longest_sample_gap_seconds")
		if err != nil {
			return err
		}
		gaps[i] = time.Duration(seconds * float64(time.Second))
		if i == 1 {
			if connected, err = a.Metric(ctx, "tcpdiag_listener_clients_total"); err != nil {
				return err
			}
		}
	}
	b.report.add(row{
		What: "longest time between two samples meanwhile", Budget: "≤ 20 ms",
		Limit: brief(gaps[0]), Ours: brief(gaps[1]),
		Note: fmt.Sprintf("both agents run beside one another, so that what else the machine does meets both; %s of the %s clients were counted by then", count(int(connected)), count(n)),
		Met:  gaps[1] <= 20*time.Millisecond, Unsure: gaps[1] <= gaps[0]+20*time.Millisecond,
	})
	return nil
}

// hurry opens connections at hurryRate, or as fast as it can, and resets each.
func hurry() (n int, took time.Duration, err error) {
	const port = watchedPort
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(listener, to); err != nil {
		return 0, 0, err
	}
	if err := unix.Listen(listener, 4096); err != nil {
		return 0, 0, err
	}
	var both errgroup.Group
	both.Go(func() error { return takeAll(listener) })
	both.Go(func() error {
		defer unix.Shutdown(listener, unix.SHUT_RD) //nolint:errcheck // ends takeAll
		start := time.Now()
		for took < hurrySeconds*time.Second {
			for due := int(took.Seconds() * hurryRate); n < due && time.Since(start) < hurrySeconds*time.Second; n++ {
				if err := connectAndReset(to); err != nil {
					return err
				}
			}
			time.Sleep(time.Millisecond)
			took = time.Since(start)
		}
		return nil
	})
	err = both.Wait()
	return n, took, err
}

func takeAll(listener int) error {
	defer unix.Close(listener)
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			_ = unix.Close(fd)
		case unix.EINTR, unix.ECONNABORTED:
		case unix.EINVAL: // shut down
			return nil
		default:
			return err
		}
	}
}

// connectAndReset leaves nothing in TIME_WAIT.
func connectAndReset(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}
