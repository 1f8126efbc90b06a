package api

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Stacks are a thread dump's frames (--thread-dump), in groups of threads that are in
// the same place. There are no thread names, locks and values in them.
type Stacks struct {
	Time            time.Time    `json:"time"`
	TookSeconds     float64      `json:"took_seconds"` // from the request to the end of the answer
	Threads         int          `json:"threads"`      // of Java, with a frame
	Workers         int          `json:"workers"`      // of them, those that handle a server's requests
	Groups          []StackGroup `json:"groups"`       // the workers first, then those of most threads
	OtherThreads    int          `json:"other_threads,omitempty"`
	CarrierThreads  int          `json:"carrier_threads,omitempty"`   // that ran a virtual thread
	VirtualThreads  int          `json:"virtual_threads,omitempty"`   // of threads
	Scheduler       *Scheduler   `json:"virtual_scheduler,omitempty"` // left out where the JVM cannot say (before JDK 24)
	DeadlockFound   bool         `json:"deadlock_found,omitempty"`
	AnswerWasCut    bool         `json:"answer_was_cut,omitempty"`
	VirtualNotShown bool         `json:"virtual_threads_not_shown,omitempty"` // the connector's requests are handled by such, and the JVM did not write them down
}

// Scheduler is what the JVM says of the carriers of its virtual threads.
type Scheduler struct {
	Parallelism int `json:"parallelism"` // virtual threads that can run at the same time
	Carriers    int `json:"carriers"`    // platform threads for them
	Mounted     int `json:"mounted"`     // virtual threads that have one: they run, or are pinned to it
	Queued      int `json:"queued"`      // that could run, and wait for one
}

// StackGroup are threads that are in the same place.
type StackGroup struct {
	Threads     int      `json:"threads"`
	Worker      bool     `json:"worker,omitempty"`
	Idle        bool     `json:"idle,omitempty"`        // they wait for their pool's next task
	State       string   `json:"state,omitempty"`       // java.lang.Thread.State
	Library     string   `json:"library"`               // the method by which the innermost library was entered
	Application string   `json:"application,omitempty"` // the topmost method of neither the JDK nor a known library
	Frames      []string `json:"frames"`                // of one of them, the innermost first, at most 24
}

// newStacks are what a process said that owns a listener.
func newStacks(l *model.Listener, s *model.Stacks) *Stacks {
	if s == nil {
		return nil
	}
	out := &Stacks{
		Time: s.At, TookSeconds: s.Took.Seconds(), Threads: s.Threads, Workers: s.Workers, Groups: make([]StackGroup, 0, len(s.Groups)),
		OtherThreads: s.Others, CarrierThreads: s.Carriers, DeadlockFound: s.Deadlocked, AnswerWasCut: s.Cut,
		VirtualThreads: s.Virtual, VirtualNotShown: l.OnVirtualThreads() && !s.VirtualShown,
	}
	if s.Scheduler != nil {
		out.Scheduler = new(Scheduler(*s.Scheduler))
	}
	for i := range s.Groups {
		out.Groups = append(out.Groups, StackGroup(s.Groups[i]))
	}
	return out
}
