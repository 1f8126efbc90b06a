// Package incident keeps what was seen of each listener: the last minutes in
// memory, second by second, and a recording of every time that one of them was
// in trouble, written as it happens, so that the evidence outlives the agent and
// the server. From a recording the verdicts can be judged again.
package incident

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// maxQueue is how many records may wait for a disk.
	maxQueue = 256
	// patience is how long the end waits for a disk that does not answer.
	patience = time.Second
)

// Options of a Recorder.
type Options struct {
	Snapshot func() *model.Snapshot // what was published last; nil before the first
	Next     func() <-chan struct{} // closed when there is another one
	Dir      string                 // "" keeps the latest in memory
	Group    *int                   // that may read Dir; nil: whatever group it has
	Limits   Limits
	Version  string
	Shares   *shares.Ledger // of what was refused or ended for others; may be nil
	Log      *slog.Logger
	Now      func() time.Time
}

// Recorder keeps the history of each listener, and records its incidents. The
// disk has a goroutine of its own: a publisher never waits for it.
type Recorder struct {
	options Options
	history *History
	tracker tracker
	writer  *writer
	jobs    chan job
	last    *model.Snapshot

	total, lost atomic.Uint64
	going       atomic.Int64
}

// job is a record on its way to the disk.
type job struct {
	of    *open
	begin *recording.Header
	frame *recording.Frame
	tick  *recording.Tick
	end   *recording.End
	after bool // frames before it were lost
}

// NewRecorder has recorded nothing yet; Run does.
func NewRecorder(o Options) *Recorder {
	h := NewHistory()
	return &Recorder{
		options: o, history: h, tracker: tracker{history: h, share: o.Shares.Resource("incidents")},
		writer: newWriter(o), jobs: make(chan job, maxQueue),
	}
}

// History is what was seen of each listener in the last minutes.
func (r *Recorder) History() *History { return r.history }

// List are the recordings that are kept, the latest first.
func (r *Recorder) List() []recording.Summary { return r.writer.shelf.list() }

// Open opens a recording to read it, ErrUnknown where there is none.
func (r *Recorder) Open(id string) (io.ReadCloser, error) { return r.writer.open(id) }

// Going reports whether a recording is being written.
func (r *Recorder) Going(id string) bool { return r.writer.shelf.isGoing(id) }

// State is what the metrics say about the recorder.
func (r *Recorder) State() model.Incidents {
	return model.Incidents{
		Total: r.total.Load(), Open: int(r.going.Load()),
		LostFrames: r.lost.Load() + r.writer.lost.Load(), WriteErrors: r.writer.failures.Load(),
	}
}

// Run records until ctx is done.
func (r *Recorder) Run(ctx context.Context) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.writer.run(r.jobs)
	}()
	for ctx.Err() == nil {
		next := r.options.Next()
		r.Observe(r.options.Snapshot())
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
	r.tracker.stop(r.options.Now(), r)
	close(r.jobs)
	select {
	case <-written:
	case <-time.After(patience):
		r.options.Log.Warn("incidents: a disk that does not answer is not waited for")
	}
	return nil
}

// Observe takes a snapshot, where it is another one than before.
func (r *Recorder) Observe(s *model.Snapshot) {
	if s == nil || s == r.last {
		return
	}
	r.last = s
	r.history.Observe(s)
	r.tracker.observe(s, r)
	r.going.Store(int64(len(r.tracker.cases)))
}

func (r *Recorder) offer(j job) bool {
	select {
	case r.jobs <- j:
		return true
	default:
		return false
	}
}

func (r *Recorder) begin(c *open, h *recording.Header) bool {
	h.Version = r.options.Version
	if !r.offer(job{of: c, begin: h}) {
		return false
	}
	r.total.Add(1)
	return true
}

func (r *Recorder) frame(c *open, f *recording.Frame) bool {
	if !r.offer(job{of: c, frame: f, after: c.lost}) {
		r.lost.Add(1)
		c.lost = true
		return true // the next one is due in its turn
	}
	c.lost = false
	return true
}

func (r *Recorder) tick(c *open, t *recording.Tick) bool { return r.offer(job{of: c, tick: t}) }

func (r *Recorder) end(c *open, e *recording.End) bool { return r.offer(job{of: c, end: e}) }

var errNoFolder = errors.New("no directory")
