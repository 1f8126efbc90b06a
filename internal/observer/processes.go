package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// processes are the latest readings of the watched listeners' processes. One
// goroutine reads; anybody may ask.
type processes struct {
	proc   hostproc.FS
	jvm    OpenJVM
	now    func() time.Time
	memory map[hostproc.ProcessKey]*processMemory // the reader's own
	load   threads.Load                           // likewise

	store *facts.Store
}

// OpenJVM opens the performance data of a process.
type OpenJVM func(hostproc.ProcessKey) (*hsperf.File, error)

// of is the same for one process.
func (open OpenJVM) of(key hostproc.ProcessKey) func() (*hsperf.File, error) {
	return func() (*hsperf.File, error) { return open(key) }
}

func newProcesses(proc hostproc.FS, store *facts.Store, jvm OpenJVM, now func() time.Time) *processes {
	return &processes{
		proc: proc, jvm: jvm, now: now,
		memory: make(map[hostproc.ProcessKey]*processMemory), store: store,
	}
}

// read takes another reading of a process, and returns what it cost.
func (ps *processes) read(key hostproc.ProcessKey) (cost time.Duration) {
	m := ps.memory[key]
	if m == nil {
		m = &processMemory{runDelay: threads.NewRunDelayCounter(ps.proc, key.PID, &ps.load)}
		ps.memory[key] = m
	}
	var miss facts.Missing
	var p *model.Process
	at := ps.now()
	cost, _ = cputime.Of(func() error {
		p = m.read(ps.proc, ps.jvm.of(key), at, key.PID, &miss)
		return nil
	})
	if p != nil && p.StartTime != key.StartTime { // the number is another's by now
		p = nil
	}
	ps.store.PutProcess(key, at, p, miss.List)
	return cost
}

// keep forgets all processes but those of the watched listeners.
func (ps *processes) keep(owners map[hostproc.ProcessKey]*facts.Watched) {
	for key, m := range ps.memory {
		if owners[key] == nil {
			m.close()
			delete(ps.memory, key)
		}
	}
}

// close gives the files back.
func (ps *processes) close() { ps.keep(nil) }
