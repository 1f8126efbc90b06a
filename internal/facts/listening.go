package facts

import (
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Listening is a listening address as a LISTEN dump shows it, with its owner.
type Listening struct {
	ID        model.ListenerID
	Members   []sockdiag.Listener // several under SO_REUSEPORT
	Owner     *owner.Process      // nil where it is not known
	Processes int                 // that hold a member, of those that are known
}

// Port is the port it listens on.
func (l *Listening) Port() uint16 { return l.ID.Address.Port() }

// Worst is the member whose queue is fullest.
func (l *Listening) Worst() *sockdiag.Listener {
	best := &l.Members[0]
	for i := range l.Members {
		if m := &l.Members[i]; ratio(m) > ratio(best) {
			best = m
		}
	}
	return best
}

func ratio(l *sockdiag.Listener) float64 { return model.QueueRatio(l.RecvQ, l.SendQ) }

// Inodes are those of its sockets.
func (l *Listening) Inodes() []uint32 {
	out := make([]uint32, len(l.Members))
	for i := range l.Members {
		out[i] = l.Members[i].Inode
	}
	return out
}

// Process is whose listener it is; ok is false where that is not known.
func (l *Listening) Process() (key hostproc.ProcessKey, ok bool) {
	if l.Owner == nil {
		return key, false
	}
	return hostproc.ProcessKey{PID: l.Owner.PID, StartTime: l.Owner.StartTime}, true
}
