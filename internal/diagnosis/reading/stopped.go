package reading

import "github.com/tcpdiag/tcpdiag/internal/model"

// Stopped reports whether the process is stopped: by a signal or a debugger, or with its cgroup; or until its core dump is written.
// Or all its worker processes are, and clients wait to be accepted by these.
func Stopped(l *model.Listener) bool {
	if l == nil || l.Process == nil {
		return false
	}
	return l.Process.Stopped || l.Process.Frozen || l.Process.Dumping || allWorkersStopped(l) && !acceptsBeside(l) && nobodyTaken(l)
}

func allWorkersStopped(l *model.Listener) bool {
	n, of := StoppedWorkers(l)
	return n > 0 && n == of && !MoreWorkers(l)
}

// StillAccepts means that all its worker processes are stopped, and that it accepts beside them: as a server that starts a
// process for each request.
func StillAccepts(l *model.Listener) bool { return allWorkersStopped(l) && acceptsBeside(l) }

// acceptsBeside means that nobody waits in the accept queue, or that the samples of the last second found it shorter, as accept(2)
// alone makes it, or that the server waits for clients there. That its first is no longer found is no proof: it may have reset.
func acceptsBeside(l *model.Listener) bool {
	if !QueueWaits(l) || l.Acceptor == model.AcceptorAccepts {
		return true
	}
	taken, stands := l.AcceptQueue.TakenAgo, l.AcceptQueue.StandsFor
	return taken != nil && *taken < LongWaiting && (stands == nil || *stands < standstillLeast)
}

// nobodyTaken means that clients do not only pass through the accept queue: none is taken out for a while, or one waits
// for as long, and none was taken out since that was read.
func nobodyTaken(l *model.Listener) bool {
	taken, stands := l.AcceptQueue.TakenAgo, l.AcceptQueue.StandsFor
	if stands != nil && *stands >= standstillLeast {
		return true
	}
	old := OldestWait(l)
	return old != nil && *old >= standstillLeast && (taken == nil || l.Connections == nil || *taken >= l.Connections.Age)
}

// StoppedWorkers are worker processes that are stopped, of how many, where the process that has started them is not.
func StoppedWorkers(l *model.Listener) (n, of int) {
	if l == nil || l.Process == nil || l.Process.Stopped || l.Process.Frozen || l.Process.Dumping {
		return 0, 0
	}
	return l.Process.StoppedChildren, l.Process.Children
}

// MoreWorkers means that it has started more processes than were read: some of them may be workers, too.
func MoreWorkers(l *model.Listener) bool { return l.Process.ChildrenUnread > 0 }

// WorkerStopped means that one of them is, and clients are accepted all the same.
func WorkerStopped(l *model.Listener) bool {
	n, _ := StoppedWorkers(l)
	return n > 0 && !Stopped(l)
}
