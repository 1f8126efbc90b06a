package observer

import (
	"cmp"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// resetEvery bounds how often a process's descriptors are compared with the
// kernel's sockets: it reads every link and every table.
const resetEvery = 5 * time.Second

// resetLook is the latest count of what may be connections that the client
// reset while Tomcat still holds their slot.
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
//
// A descriptor does not tell which port its socket had, so what a process has
// of them is shared by those of its listeners that it may explain, each as far
// as it has room. Connections of its other ports and outgoing ones that the peer
// reset may still be among them.
func (s *Sampler) countReset(sc *scan, snap *model.Snapshot) {
	byProcess := make(map[int][]*model.Listener)
	for i := range snap.Listeners {
		if l := &snap.Listeners[i]; slotsMissing(l) && sc.kept[i].account.hadQueue() && l.Process != nil {
			byProcess[l.Process.PID] = append(byProcess[l.Process.PID], l)
		}
	}
	for pid := range s.resetLooks {
		if byProcess[pid] == nil {
			delete(s.resetLooks, pid)
		}
	}
	for pid, listeners := range byProcess {
		known, ok := s.resetLooks[pid]
		if !ok || known.due(sc.at) {
			known = s.lookForReset(sc, pid)
			s.resetLooks[pid] = known
		}
		known.share(listeners)
	}
}

func (s *Sampler) lookForReset(sc *scan, pid int) resetLook {
	look := resetLook{at: sc.at}
	look.cost, _ = cpuTime(func() error {
		look.count = s.forgottenSockets(sc, pid)
		return nil
	})
	s.aside += look.cost
	return look
}

func (r *resetLook) share(listeners []*model.Listener) {
	if r.count == nil {
		return
	}
	rooms := make([]uint64, len(listeners))
	for i, l := range listeners {
		rooms[i] = uint64(freeSlots(l))
	}
	for i, n := range losses.Allot(uint64(*r.count), rooms, cmp.Compare) {
		listeners[i].Connections.Reset = new(int(n))
	}
}

// slotsMissing says that clients wait although Tomcat seems to have room. Where
// not all connections were counted it may not.
func slotsMissing(l *model.Listener) bool {
	c := l.Connector
	return l.AcceptQueue.Length > 0 && !l.Connections.Partial && c != nil && c.MaxConnections != nil &&
		c.MaxConnections.Value > 0 && l.Connections.Accepted < c.MaxConnections.Value
}

// freeSlots is how many connections a Tomcat can hold that are not seen: what
// its limit leaves, or its own count where Actuator tells it.
func freeSlots(l *model.Listener) int {
	c := l.Connector
	held := c.MaxConnections.Value
	if n := c.CurrentConnections; n != nil && *n < held && *n > l.Connections.Accepted {
		held = *n - 1 // below the limit it reads one too many
	}
	return held - l.Connections.Accepted
}

// forgottenSockets is nil where the descriptors may not be read.
func (s *Sampler) forgottenSockets(sc *scan, pid int) *int {
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
	return &still
}
