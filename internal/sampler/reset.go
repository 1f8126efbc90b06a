package sampler

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// resetEvery bounds how often a process's descriptors are compared with the
// kernel's sockets: it reads every link and every table.
const resetEvery = 5 * time.Second

// resetLook is the latest count of connections that the client reset while
// Tomcat still holds their slot.
type resetLook struct {
	at    time.Time
	cost  time.Duration // of CPU time
	count *int
}

// resetPart is the part of a core that these looks may take: one that cost d is
// repeated after d / resetPart, and does not stretch the interval of the scans.
const resetPart = 0.003

func (r *resetLook) due(now time.Time) bool {
	return now.Sub(r.at) >= max(resetEvery, time.Duration(float64(r.cost)/resetPart))
}

// countReset counts, where it explains something, the descriptors of sockets
// that the kernel has forgotten: the accept queue was not empty in two looks,
// and yet fewer connections are accepted than maxConnections allows.
func (s *Sampler) countReset(sc *scan, snap *backlog.Snapshot) {
	for i := range snap.Listeners {
		l := &snap.Listeners[i]
		if !slotsMissing(l) || !sc.kept[i].account.hadQueue() || l.Process == nil {
			delete(s.resetLooks, l.ID)
			continue
		}
		known, ok := s.resetLooks[l.ID]
		if !ok || known.due(sc.at) {
			known = s.lookForReset(sc, l)
			s.resetLooks[l.ID] = known
		}
		l.Connections.Reset = known.count
	}
}

func (s *Sampler) lookForReset(sc *scan, l *backlog.Listener) resetLook {
	look := resetLook{at: sc.at}
	look.cost, _ = cpuTime(func() error {
		look.count = s.forgottenSockets(sc, l)
		return nil
	})
	s.aside += look.cost
	return look
}

// slotsMissing says that clients wait although Tomcat seems to have room.
func slotsMissing(l *backlog.Listener) bool {
	c := l.Connector
	return l.AcceptQueue.Length > 0 && c != nil && c.MaxConnections != nil &&
		c.MaxConnections.Value > 0 && l.Connections.Accepted < c.MaxConnections.Value
}

// forgottenSockets is nil where the descriptors may not be read.
func (s *Sampler) forgottenSockets(sc *scan, l *backlog.Listener) *int {
	pid := l.Process.PID
	held := make(map[uint32]struct{})
	err := s.src.Proc.SocketInodes(pid, func(inode uint32) { held[inode] = struct{}{} })
	if !sc.miss.ok(pid, "descriptors", "run as the same uid and gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: "+
		"without them accepted may be undercounted, connections that clients reset keep their slot", err) {
		return nil
	}
	if err := s.src.Proc.KernelSockets(pid, func(inode uint32) { delete(held, inode) }); err != nil {
		return nil
	}
	// A connection that was closed between the two readings is no longer held.
	still := 0
	err = s.src.Proc.SocketInodes(pid, func(inode uint32) {
		if _, ok := held[inode]; ok {
			still++
		}
	})
	if err != nil {
		return nil
	}
	// Connections of the process's other ports and outgoing ones may be among
	// them; Tomcat never holds more than maxConnections.
	return new(min(still, l.Connector.MaxConnections.Value-l.Connections.Accepted))
}
