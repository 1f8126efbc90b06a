package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// stopped: by SIGSTOP, a debugger or the cgroup's freezer, in either reading.
func (j *judge) stopped() bool {
	return j.cur.Stopped.V || j.near.taken() && j.near.Stopped.V
}

// paused reports whether a pause is under way, or safepoints took a share of the
// time since the reading before.
func (j *judge) paused(share float64) bool {
	now := j.cur.Safepoint
	if !now.Known {
		return false
	}
	if now.V.Lasted >= pauseMin {
		return true
	}
	if !j.near.taken() || !j.near.Safepoint.Known {
		return false
	}
	pause := now.V.Lasted + now.V.Stood - j.near.Safepoint.V.Stood
	return pause >= pauseMin && pause.Seconds() >= share*j.since(j.near).Seconds()
}

// since is the time from an earlier reading to this one.
func (j *judge) since(earlier *Reading) time.Duration { return j.cur.Ended.Sub(earlier.Ended) }

// throttled reports whether the CPU limit withheld more than a share of the CPU
// time that the process wanted, in more than that share of its periods: a
// single period in which it withholds nearly everything is as little as a
// little in each.
func (j *judge) throttled(share float64) bool {
	then, now := j.wide.CPULimit, j.cur.CPULimit
	if !j.wide.taken() || !then.Known || !now.Known || j.since(j.wide) > rateOver {
		return false
	}
	periods := float64(now.V.Periods - then.V.Periods)
	hit := float64(now.V.Throttled - then.V.Throttled)
	withheld, used := now.V.Withheld-then.V.Withheld, now.V.Used-then.V.Used
	if periods == 0 || hit == 0 || withheld <= 0 || used < 0 {
		return false
	}
	return min(hit/periods, withheld.Seconds()/(withheld+used).Seconds()) >= share
}

// starved reports whether the acceptor itself waited for a CPU for most of the
// time. The kernel adds the delay up when the thread is given a CPU, so one that
// still waits shows in neither counter.
func (j *judge) starved() bool {
	then, now := &j.near.Acceptor, &j.cur.Acceptor
	if !j.apart(MinApart) || now.TID == 0 || then.TID != now.TID || j.since(j.near) > rateOver || now.Ran == 0 {
		return false
	}
	if then.Activity == Runnable && now.Activity == Runnable && now.Ran == then.Ran && now.CPUTime == then.CPUTime {
		return true
	}
	return (now.RunDelay - then.RunDelay).Seconds() >= most*j.since(j.near).Seconds()
}

// outOfFiles reports whether accept() has no descriptor left. An acceptor in
// accept() has one: it was given a connection or has not been asked for one.
func (j *judge) outOfFiles() bool {
	used, limit := j.cur.Files, j.cur.FilesLimit
	if !used.Known || !limit.Known || limit.V <= 0 || !model.FilesReached(used.V, limit.V) {
		return false
	}
	switch j.cur.Acceptor.Activity {
	case Accepting:
		return false
	case Sleeping: // backing off
		return true
	}
	return j.cur.FilesAge <= listed
}
