package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Stopped by SIGSTOP, a debugger or the cgroup's freezer, in either reading.
func (m *Moment) Stopped() bool {
	return m.cur.Stopped.V || m.near.taken() && m.near.Stopped.V
}

// Paused reports whether a pause is under way, or safepoints took a share of the
// time since the reading before.
func (m *Moment) Paused(share float64) bool {
	now := m.cur.Safepoint
	if !now.Known {
		return false
	}
	if now.V.Lasted >= pauseMin {
		return true
	}
	if !m.near.taken() || !m.near.Safepoint.Known {
		return false
	}
	pause := now.V.Lasted + now.V.Stood - m.near.Safepoint.V.Stood
	return pause >= pauseMin && pause.Seconds() >= share*m.since(m.near).Seconds()
}

// since is the time from an earlier reading to this one.
func (m *Moment) since(earlier *Reading) time.Duration { return m.cur.Ended.Sub(earlier.Ended) }

// Throttled reports whether the CPU limit withheld more than a share of the CPU
// time that the process wanted, in more than that share of its periods: a
// single period in which it withholds nearly everything is as little as a
// little in each.
func (m *Moment) Throttled(share float64) bool { return m.withheld(m.wide, share) }

// StarvedByLimit reports whether the acceptor lacked a CPU for want of quota: it waited for most of the time, and the CPU limit
// withheld most of what the process wanted in that time, or much of it over about a second.
func (m *Moment) StarvedByLimit() bool {
	return m.Starved() && (m.withheld(m.near, Most) || m.Throttled(Much))
}

func (m *Moment) withheld(since *Reading, share float64) bool {
	then, now := since.CPULimit, m.cur.CPULimit
	if !since.taken() || !then.Known || !now.Known || m.since(since) > rateOver {
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

// Starved reports whether the acceptor itself waited for a CPU for most of the
// time. The kernel adds the delay up when the thread is given a CPU, so one that
// still waits shows in neither counter.
func (m *Moment) Starved() bool {
	then, now := &m.near.Acceptor, &m.cur.Acceptor
	if !m.apart(MinApart) || now.TID == 0 || then.TID != now.TID || m.since(m.near) > rateOver || now.Ran == 0 {
		return false
	}
	if then.Activity == Runnable && now.Activity == Runnable && now.Ran == then.Ran && now.CPUTime == then.CPUTime {
		return true
	}
	return (now.RunDelay - then.RunDelay).Seconds() >= Most*m.since(m.near).Seconds()
}

// NotAsked reports whether accept() is not called, as all connections are taken: some descriptors are left, and the acceptor is not
// seen to back off. Tomcat waits for a slot first (LimitLatch).
func (m *Moment) NotAsked() bool {
	used, limit := m.cur.Files, m.cur.FilesLimit
	return m.AtLimit() && used.Known && limit.Known && used.V < limit.V && m.cur.Acceptor.Activity != Sleeping
}

// OutOfFiles reports whether accept() has no descriptor left. An acceptor in
// accept() has one: it was given a connection or has not been asked for one.
func (m *Moment) OutOfFiles() bool {
	used, limit := m.cur.Files, m.cur.FilesLimit
	if !used.Known || !limit.Known || limit.V <= 0 || !model.FilesReached(used.V, limit.V) {
		return false
	}
	switch m.cur.Acceptor.Activity {
	case Accepting:
		return false
	case Sleeping: // backing off
		return true
	}
	return m.cur.FilesAge <= listed
}
