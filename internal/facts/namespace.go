package facts

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Namespace is what is known of a network namespace that is open.
type Namespace struct {
	ID       uint64
	PID      int  // of a process that was in it when it was opened, 0 where none was asked for
	Answers  bool // the latest samples were answered
	Sysctl   map[string]int
	SysctlOK bool           // it could be read again when it was due
	Sockstat map[string]int // nil where it could not be read
	Sampled  []Sampled

	// What is counted, where the counters are followed.
	Counted  bool
	Window   losses.Window
	Accounts map[model.ListenerID]*losses.Report
	Down     map[uint16]*model.Losses // by expected port on which nothing listens
}

// Sampled is what the samples know of a watched listener.
type Sampled struct {
	ID      model.ListenerID
	Inode   uint32 // of the fullest member
	Members int
	Queue   losses.Queue
	Drops   uint64    // of all its sockets since they were made
	Known   bool      // Drops is: the kernel reports it
	Moved   time.Time // when that last grew
	Full    time.Time // since when the queue is full, zero while it is not
	Stands  time.Time // since when no sample found the queue empty, zero while it is
	Taken   uint64    // clients accepted from the queue between two samples: a lower bound
	Gone    bool      // none of its sockets listens any more
}
