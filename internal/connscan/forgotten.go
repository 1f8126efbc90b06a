package connscan

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

const (
	// resetEvery bounds how often a process's descriptors are compared with the
	// kernel's sockets: it reads every link and every table.
	resetEvery = 5 * time.Second
	// resetPart is the part of a core that this may take: what cost d is
	// repeated after d / resetPart.
	resetPart = 0.003
)

// CountForgotten counts, where it explains something, the descriptors of sockets that
// the kernel has forgotten: the accept queue was not empty in two walks, and yet
// fewer connections are accepted than maxConnections allows. The last walk of a
// one-shot counts them whenever they were counted before.
func (s *Scanner) CountForgotten(r *facts.Watchlist, n *namespace.Namespace, readings []facts.Sampled, final bool) (cost time.Duration) {
	t := s.memory(n.ID)
	length := make(map[model.ListenerID]int, len(readings))
	for i := range readings {
		length[readings[i].ID] = int(readings[i].Queue.Length)
	}
	for _, e := range r.In(n.ID) {
		inode := e.Worst().Inode
		had := t.queued[e.ID] == inode
		t.queued[e.ID] = 0
		if length[e.ID] > 0 {
			t.queued[e.ID] = inode
		}
		found := s.store.Connections(e.ID)
		last, ok := found.Last()
		key, known := e.Process()
		if !ok || !known || !had {
			continue
		}
		l := model.Listener{
			AcceptQueue: &model.AcceptQueue{Length: length[e.ID]},
			Connector:   e.Connector, Connections: &last.Value.Counts,
		}
		if connections.SlotsMissing(&l) {
			cost += s.countForgotten(key, final)
		}
	}
	return cost
}

func (s *Scanner) countForgotten(key hostproc.ProcessKey, final bool) time.Duration {
	if known, ok := s.store.Forgotten(key); ok && !final && s.now().Sub(known.At) < known.Rest {
		return 0
	}
	next := facts.Forgotten{At: s.now()}
	var miss facts.Missing
	cost, _ := cputime.Of(func() error {
		next.Count = forgottenSockets(s.proc, key.PID, &miss)
		return nil
	})
	next.Rest, next.Unavailable = cputime.Rest(cost, resetEvery, resetPart), miss.List
	s.store.PutForgotten(key, next)
	return cost
}

// forgottenSockets is nil where the descriptors may not be read.
func forgottenSockets(proc hostproc.FS, pid int, miss *facts.Missing) *int {
	inodes := make(map[uint32]struct{})
	err := proc.SocketInodes(pid, func(inode uint32) { inodes[inode] = struct{}{} })
	if !miss.OK(pid, "descriptors", "run as the same uid and gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: "+
		"without them accepted may be undercounted, connections that clients reset keep their slot", err) {
		return nil
	}
	if err := netstat.KernelSockets(proc, pid, func(inode uint32) { delete(inodes, inode) }); err != nil {
		return nil
	}
	// A connection that was closed between the two readings is no longer held.
	still := 0
	err = proc.SocketInodes(pid, func(inode uint32) {
		if _, ok := inodes[inode]; ok {
			still++
		}
	})
	if err != nil {
		return nil
	}
	return &still
}
