package reader

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// AcceptorReader reads the process and the acceptor of one listener.
type AcceptorReader interface {
	Read() evidence.Reading
	Close()
}

// OpenAcceptor opens a reader of a listener's process.
type OpenAcceptor func(process hostproc.ProcessKey, of Listener) AcceptorReader

// Acceptors read and judge the evidence of the moment, of the listeners that are or were
// in trouble. They are for one goroutine at a time.
type Acceptors struct {
	open    OpenAcceptor
	now     func() time.Time
	readers map[acceptorKey]*acceptor
	store   *facts.Store
}

// acceptorKey is whose acceptor it is: another process or another socket has
// another one.
type acceptorKey struct {
	id      model.ListenerID
	process hostproc.ProcessKey
	inode   uint32
}

type acceptor struct {
	reader AcceptorReader
	track  evidence.Track
	used   time.Time
}

// NewAcceptors puts what it judges into store; open opens a reader, nil for Open.
func NewAcceptors(proc hostproc.FS, store *facts.Store, jvm OpenJVM, now func() time.Time, open OpenAcceptor) *Acceptors {
	if open == nil {
		open = func(process hostproc.ProcessKey, of Listener) AcceptorReader {
			return Open(proc, jvm.of(process), of, now)
		}
	}
	return &Acceptors{
		open: open, now: now, readers: make(map[acceptorKey]*acceptor),
		store: store,
	}
}

// Undecided reports whether another reading may soon decide what the latest left open.
func (as *Acceptors) Undecided(id model.ListenerID) bool {
	list := as.store.Judgements(id)
	last, ok := list.Last()
	return ok && last.Value.Soon
}

// Read takes another reading of a listener's evidence and judges it: queued are the
// clients in its accept queue, accepted those that the samples have seen leave it, r who else listens.
// pending: one more reading may decide.
func (as *Acceptors) Read(e *facts.Watched, queued int, accepted uint64, r *facts.Watchlist, phases evidence.Phases) (cost time.Duration, pending bool) {
	process, ok := e.Process()
	if !ok {
		return 0, false
	}
	key := acceptorKey{id: e.ID, process: process, inode: e.Worst().Inode}
	var j evidence.Judgement
	at := as.now()
	cost, _ = cputime.Of(func() error {
		a := as.readers[key]
		if a == nil {
			a = &acceptor{reader: as.open(process, Listener{PID: process.PID, Port: e.Port(), Inode: key.inode, Others: r.OtherPorts(e), Unowned: r.Unowned(e)})}
			as.readers[key] = a
		}
		a.used = at
		now := a.reader.Read()
		now.Queued, now.Accepted = evidence.Known(queued), evidence.Known(accepted)
		j = a.track.Judge(now, phases, causes.OfMoment)
		return nil
	})
	as.store.PutJudgement(e.ID, at, j)
	return cost, j.Pending
}

// acceptorRest is how long after the trouble the files stay open.
const openFor = time.Minute

// Retain closes what has not been read for a while, and what is of a socket or a process
// that is not watched any more: listeners that come and go must not use up the files.
func (as *Acceptors) Retain(r *facts.Watchlist) {
	watched := make(map[acceptorKey]bool)
	for i := range r.Watched {
		e := &r.Watched[i]
		if process, ok := e.Process(); ok {
			for _, inode := range e.Inodes() {
				watched[acceptorKey{id: e.ID, process: process, inode: inode}] = true
			}
		}
	}
	for key, a := range as.readers {
		if !watched[key] || as.now().Sub(a.used) >= openFor {
			a.reader.Close()
			delete(as.readers, key)
		}
	}
	as.store.DropJudgements(as.now().Add(-openFor))
}

// Close closes all files.
func (as *Acceptors) Close() {
	for key, a := range as.readers {
		a.reader.Close()
		delete(as.readers, key)
	}
}
