package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const (
	// tapTurnTime is that of a turn, of which the first part does not count. Short, as
	// a busy machine drifts.
	tapTurnTime, tapPauseTime = 80 * time.Millisecond, 40 * time.Millisecond
	// tapOwnTime is that in which the time of the tap's own process is measured, after
	// tapSettleTime: a tap that was just opened takes memory, of which an agent's has
	// enough. Beside 13,000 connections a second it takes 13 ms of processor time a
	// second between a quarter and half a second after it was opened, and 6.5 ms from
	// 0.6 seconds on.
	tapOwnTime, tapSettleTime = 3 * time.Second, time.Second
)

// tapTurns are turns without the tap and with it, in requests for each second of processor
// time; own is that of the process that has the tap, for each request.
func (b *bench) tapTurns(ctx context.Context, server *exec.Cmd, turns int, veth, alert bool, args []string) (rates []turn, own time.Duration, err error) {
	most := time.Duration(2*turns)*2*(tapTurnTime+tapPauseTime) + time.Minute
	args = append([]string{"-t1", "-c32", fmt.Sprintf("-d%.0fs", most.Seconds())}, args...)
	start := startLoad
	if veth {
		start = startLoadAcross
	}
	load, err := start(ctx, args)
	if err != nil {
		return nil, 0, err
	}
	defer rig.End(load) // long before its time
	served, err := openServed()
	if err != nil {
		return nil, 0, err
	}
	defer served.Close()
	time.Sleep(2 * time.Second)
	own, perRequest, err := ownTime(ctx, served, alert)
	if err != nil {
		return nil, 0, err
	}
	t := tapTurn{served: served, alert: alert, own: own, perRequest: perRequest, others: []int{server.Process.Pid, load.Process.Pid}}
	for i := range 2*turns + 1 {
		rate, err := t.take(i%2 == 1)
		if err != nil {
			return nil, 0, err
		}
		rates = append(rates, turn{agent: i % 2, rate: rate})
	}
	return rates, own, nil
}

// served counts the segments that this namespace has sent: as many for each request. Tomcat's own
// count takes longer to ask for than a turn allows.
type served struct{ *netstat.HandshakeCountersFile }

func openServed() (served, error) {
	proc, err := hostproc.NewFS("/proc")
	if err != nil {
		return served{}, err
	}
	file, err := netstat.OpenHandshakeCounters(proc, os.Getpid())
	return served{file}, err
}

func (s served) segments() (float64, error) {
	var now netstat.HandshakeCounters
	err := s.Read(&now)
	return float64(now.Sent), err
}

// ownTime is what this process takes for each request with the tap; perRequest, how many
// segments each has.
func ownTime(ctx context.Context, s served, alert bool) (own time.Duration, perRequest float64, err error) {
	tap, err := openTap(tomcatPort, !alert)
	if err != nil {
		return 0, 0, err
	}
	defer tap.Close()
	time.Sleep(tapSettleTime)
	type reading struct {
		used                time.Duration
		responses, segments float64
	}
	read := func() (r reading, err error) {
		var errs [3]error
		r.responses, errs[0] = responses(ctx)
		r.segments, errs[1] = s.segments()
		r.used, errs[2] = rig.CPUTime(os.Getpid())
		return r, errors.Join(errs[:]...)
	}
	before, err := read()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(tapOwnTime)
	after, err := read()
	if err != nil {
		return 0, 0, err
	}
	n := after.responses - before.responses
	return time.Duration(float64(after.used-before.used) / n), (after.segments - before.segments) / n, nil
}

// tapTurn takes turns.
type tapTurn struct {
	served
	alert      bool
	own        time.Duration // of the tap's process, for each request
	perRequest float64       // segments
	others     []int         // processes whose time counts in each turn
}

// take is one turn's requests for each second of processor time.
func (t *tapTurn) take(tapped bool) (rate float64, err error) {
	if !tapped {
		n, used, err := t.count()
		return n / used.Seconds(), err
	}
	tap, err := openTap(tomcatPort, !t.alert)
	if err != nil {
		return 0, err
	}
	defer tap.Close()
	n, used, err := t.count()
	if err != nil {
		return 0, err
	}
	report, err := tap.Report()
	if err == nil && report.OneWay == t.alert {
		err = fmt.Errorf("the tap reads outgoing packets: %t", !report.OneWay)
	}
	return n / (used.Seconds() + n*t.own.Seconds()), err
}

// count is how many requests a turn had, and what the other processes used.
func (t *tapTurn) count() (n float64, used time.Duration, err error) {
	time.Sleep(tapPauseTime)
	usedBefore, err := cpuTimes(t.others)
	if err != nil {
		return 0, 0, err
	}
	before, err := t.segments()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(tapTurnTime)
	usedAfter, err := cpuTimes(t.others)
	if err != nil {
		return 0, 0, err
	}
	after, err := t.segments()
	return (after - before) / t.perRequest, usedAfter - usedBefore, err
}

func cpuTimes(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		used, err := rig.CPUTime(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}
