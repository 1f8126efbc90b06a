package connscan

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// readWorkers reads what a process's worker threads wait for, nil where they have
// none or that cannot be read. It is for processes in trouble: it reads a file of
// each thread.
func (h *process) readWorkers(s *Scanner, r *facts.Watchlist, key hostproc.ProcessKey, list []downstream.Connection) *downstream.Work {
	ports, names := connectorsOf(r, key)
	if h.workers, h.workersErr = threads.ListWorkers(s.proc, key.PID, ports, names, h.workers); h.workersErr != nil || len(h.workers.TIDs) == 0 {
		return nil
	}
	h.workers.Room = &s.peers.room
	live := make(map[uint32]struct{}, len(list))
	for i := range list {
		live[list[i].Inode] = struct{}{}
	}
	work := downstream.NewWork(list)
	h.workersErr = threads.Calls(s.proc, h.workers, live, func(c threads.WorkerCall) {
		if c.Poller {
			if c.Kind == threads.CallFutex || c.Kind == threads.CallSleep || c.Kind == threads.CallReceive || c.Kind == threads.CallConnect {
				work.PollerBlocked(c.Kind != threads.CallFutex || c.Timed)
			}
			return
		}
		if c.Kind != threads.CallAccept && c.Kind != threads.CallEpoll { // the acceptor, the poller
			work.Add(stateOf(c), c.Socket)
		}
	})
	if h.workersErr != nil {
		return nil
	}
	h.workersErr = h.workers.Unread
	s.nameSockets(key.PID, work)
	return work
}

// nameSockets tells which of the sockets that threads wait for are not TCP's. What cannot be
// read stays what it was: a wait for something else.
func (s *Scanner) nameSockets(pid int, work *downstream.Work) {
	if len(work.Unnamed()) == 0 {
		return
	}
	_ = netstat.Datagrams(s.proc, pid, func(inode uint32, peer netip.AddrPort) {
		if work.Unnamed()[inode] > 0 {
			work.Name(inode, model.UDPReceive, peer)
		}
	})
	if len(work.Unnamed()) == 0 {
		return
	}
	_ = netstat.UnixSockets(s.proc, pid, func(inode uint32) {
		if work.Unnamed()[inode] > 0 {
			work.Name(inode, model.UnixReceive, netip.AddrPort{})
		}
	})
}

func stateOf(c threads.WorkerCall) downstream.Worker {
	switch c.Kind {
	case threads.CallRunning:
		return downstream.Running
	case threads.CallSleep:
		return downstream.Timed
	case threads.CallFutex:
		if c.Timed {
			return downstream.Timed
		}
		return downstream.Parked
	case threads.CallReceive:
		if c.Socket == 0 {
			return downstream.ReadingFile
		}
		return downstream.Reading
	case threads.CallPoll, threads.CallConnect:
		return downstream.Reading
	case threads.CallOpen:
		return downstream.Opening
	case threads.CallLock:
		return downstream.Locking
	case threads.CallSync:
		return downstream.Syncing
	case threads.CallStat:
		return downstream.Stating
	case threads.CallWrite:
		if c.Socket == 0 {
			return downstream.Writing
		}
	}
	return downstream.Elsewhere
}

// connectorsOf are the ports of a process's watched listeners, and how the names of worker
// threads begin that do not show the port. The prefixes of a shared Executor are
// StandardThreadExecutor's default and that of the server.xml that Tomcat comes with,
// where it has no other.
func connectorsOf(r *facts.Watchlist, key hostproc.ProcessKey) (ports []uint16, names []string) {
	for i := range r.Watched {
		e := &r.Watched[i]
		if k, ok := e.Process(); !ok || k != key {
			continue
		}
		ports = append(ports, e.Port())
		switch c := e.Connector; {
		case c == nil:
		case c.WorkerNames != "":
			names = append(names, c.WorkerNames)
		case c.Executor != "":
			names = append(names, "tomcat-exec-", "catalina-exec-")
		}
	}
	return ports, names
}
