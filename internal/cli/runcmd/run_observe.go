package runcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/passthrough"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
)

// firstSnapshot is how long the command waits for the first snapshot: what was counted
// before the run must not be taken for the run's.
const firstSnapshot = 15 * time.Second

// firstCount is how long it waits for the first that counts clients.
const firstCount = 3 * time.Second

// decidedIn is how soon after the command's end its last clients are known of: a snapshot before that may show none of
// them.
const decidedIn = time.Second

// runWindow is what a verdict of the course spans: a status that outlives its losses would
// blur when a limit was reached.
const runWindow = 5 * time.Second

// observed is what is seen of the servers while the command runs.
type observed struct {
	recorder *loadtest.Recorder // nil where nothing could be observed; err says why
	err      error
	lasted   time.Duration
	found    bool // no port was asked for

	snapshots chan *model.Snapshot
	stop      context.CancelFunc
	ended     chan struct{} // the observing has
	source    *schedule.Scheduler
	taps      *clients.Follower
}

// observe begins, and returns with the first snapshot.
func (o *runOptions) observe(ctx context.Context, stopped <-chan struct{}) *observed {
	w := &observed{ended: make(chan struct{}), snapshots: make(chan *model.Snapshot), stop: func() {}}
	if w.err = w.open(o); w.err != nil {
		close(w.ended)
		return w
	}
	ctx, w.stop = context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.source.Run(ctx) })
	g.Go(func() error { return w.taps.Run(ctx) })
	g.Go(func() error {
		command.FollowSnapshots(ctx, w.source, w.snapshots)
		return nil
	})
	go func() {
		defer close(w.ended)
		if err := g.Wait(); err != nil && ctx.Err() == nil {
			w.err = err
		}
	}()
	w.begin(stopped, o.Handshakes != clients.Off)
	return w
}

// begin waits for the first snapshot, and for the first that counts clients where they
// may be counted: the taps open when it is known which ports to follow.
func (w *observed) begin(stopped <-chan struct{}, counts bool) {
	late, first := time.After(firstSnapshot), true
	for {
		select {
		case s := <-w.snapshots:
			w.record(s)
			if !counts || counted(s) {
				return
			}
			if first {
				late, first = time.After(firstCount), false
			}
		case <-w.ended:
			return
		case <-stopped:
			return
		case <-late:
			if w.recorder == nil {
				w.err = command.ErrNoSnapshot
			}
			return
		}
	}
}

// record begins with a snapshot.
func (w *observed) record(s *model.Snapshot) {
	w.recorder = loadtest.NewRecorder(s)
	w.recorder.Found = w.found
}

// counted reports whether clients are counted, or will not be.
func counted(s *model.Snapshot) bool {
	if len(s.Listeners)+len(s.Targets) == 0 || slices.ContainsFunc(s.Targets, func(t model.Target) bool { return t.Refused != nil }) {
		return true
	}
	for i := range s.Listeners {
		if s.Listeners[i].Totals.Clients != nil {
			return true
		}
	}
	return slices.ContainsFunc(s.Unavailable, func(u model.Unavailable) bool {
		return strings.HasPrefix(u.What, "clients by outcome")
	})
}

func (w *observed) open(o *runOptions) error {
	opt := schedule.Defaults()
	o.Options(&opt)
	opt.MaxListeners, opt.Window, opt.Remember = 0, runWindow, true
	w.found = len(o.Ports) == 0
	var err error
	if w.source, err = command.NewScheduler(opt); err != nil {
		return err
	}
	if w.taps, err = o.Follower(w.source); err != nil {
		w.source.Close()
		w.source = nil
	}
	return err
}

// follow records until the command has ended and its clients are settled, and returns its
// exit code.
func (w *observed) follow(c *passthrough.Child, o *runOptions, log io.Writer) (code int) {
	began := time.Now()
	progress := &runProgress{w: log}
	if o.quiet {
		progress.w = io.Discard
	} else if _, ok := command.TerminalOf(log); !ok {
		progress.w = io.Discard
	}
	ended, settled := c.Ended, (<-chan time.Time)(nil)
	for {
		select {
		case s := <-w.snapshots:
			if w.recorder == nil {
				w.record(s)
			}
			w.recorder.Observe(s)
			progress.show(w.recorder)
			if settled != nil && s.Time.Sub(w.recorder.Began) >= w.recorder.Ended+decidedIn && w.recorder.Open() == 0 {
				return code
			}
		case code = <-ended:
			w.lasted, ended = time.Since(began), nil
			if w.recorder == nil || w.isOver() {
				return code
			}
			w.recorder.Ended = time.Since(w.recorder.Began)
			settled = time.After(max(o.settle, 0))
		case <-settled:
			return code
		case <-c.Late: // whoever waits has the answer now
			return code
		}
	}
}

func (w *observed) isOver() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// close ends the observing. What hangs in somebody's file system ends with this process.
func (w *observed) close() {
	w.stop()
	select {
	case <-w.ended:
		if w.source != nil {
			w.taps.Close()
			w.source.Close()
		}
	case <-time.After(command.Grace):
	}
}

// runProgress writes a line when the worst status changes, and every tenth second: full
// lines, so that what the command writes on the same terminal stays whole.
type runProgress struct {
	w      io.Writer
	status model.Status
	said   time.Duration
}

const progressEvery = 10 * time.Second

func (p *runProgress) show(r *loadtest.Recorder) {
	since := r.Last.Time.Sub(r.Began)
	status := command.WorstStatus(r.Last)
	if status == p.status && since-p.said < progressEvery {
		return
	}
	p.status, p.said = status, since
	courses := r.Courses()
	i := slices.IndexFunc(courses, func(c *loadtest.Course) bool { return c.Latest.Verdict.Status == status })
	if i < 0 {
		return
	}
	fmt.Fprintln(p.w, strings.TrimRight(runreport.Line(courses[i], since), " "))
}
