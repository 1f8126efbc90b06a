package watch

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Lines are what watch writes where there is no screen to draw on: a line for
// each listener and interval, for a file next to the load test's own.
type Lines struct {
	w       io.Writer
	pace    pace
	past    map[identity]*passed
	refused map[identity]uint64 // of the ports, at the line before
	written int
}

// headingEvery is after how many lines the heading comes again.
const headingEvery = 24

// NewLines writes to w, each line an interval after the one before.
func NewLines(w io.Writer, interval time.Duration) *Lines {
	return &Lines{w: w, pace: pace{interval: interval}, past: map[identity]*passed{}, refused: map[identity]uint64{}}
}

// Add takes a snapshot, and writes it when it is time.
func (o *Lines) Add(snap *model.Snapshot) error {
	all := model.ByAddress(snap.Listeners)
	o.forget(snap)
	for _, l := range all {
		o.observe(l)
	}
	if o.pace.steps(snap.Time) == 0 {
		return nil
	}
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString(o.clock(snap) + "  nothing listens here\n")
	}
	for _, l := range all {
		if o.written%headingEvery == 0 {
			fmt.Fprintf(&b, lineFormat, term.PadRight("time", len(o.clock(snap))), "listener", "status", "cause", "queue", "peak", "connections", "waiting", "threads", "dropped", "abandoned", "turned_away", "late")
		}
		o.line(&b, snap, l)
		o.written++
	}
	if _, err := io.WriteString(o.w, b.String()); err != nil {
		return fmt.Errorf("render: lines: %w", err)
	}
	return nil
}

const lineFormat = "%-8s  %-21s  %-9s  %-15s  %9s  %6s  %12s  %7s  %9s  %7s  %9s  %11s  %4s\n"

// line ends the listener's interval.
func (o *Lines) line(b *strings.Builder, snap *model.Snapshot, l *model.Listener) {
	lost, known := o.lost(snap, l)
	m := momentOf(l)
	cause := cmp.Or(term.Printable(string(l.Verdict.Cause)), "-")
	fmt.Fprintf(b, lineFormat, o.clock(snap), lineName(snap, l), l.Verdict.Status, cause,
		bare(render.Fraction(render.AcceptQueue(l))), figureOr(l.AcceptQueue != nil, o.takePeak(l)), bare(render.Fraction(render.Connections(l))),
		figureOr(m.waiting != term.Unknown, m.waiting), bare(render.Fraction(render.Threads(l))),
		figureOr(known, lost.dropped), figureOr(known, lost.abandoned),
		figureOr(lost.counted, lost.turnedAway), figureOr(known && lost.counted, lost.late))
}

// lineName is the listener in one word; with its pod, or with its process where several network
// namespaces are watched, as all pods of a node may listen on [::]:8080.
func lineName(snap *model.Snapshot, l *model.Listener) string {
	if !l.Listening() {
		return ":" + strconv.Itoa(int(l.Port))
	}
	if l.Pod != nil {
		return term.Printable(l.Pod.String()) + ":" + strconv.Itoa(int(l.Port))
	}
	if len(snap.NetNS) > 1 && l.Process != nil {
		return render.Where(l) + "/" + strconv.Itoa(l.Process.PID)
	}
	return render.Where(l)
}

// clock is when it was, so precisely that no two lines of a listener say the same.
func (o *Lines) clock(snap *model.Snapshot) string {
	if o.pace.interval < time.Second {
		return snap.Time.Format("15:04:05.000")
	}
	return snap.Time.Format(time.TimeOnly)
}

// bare is a number without its commas: awk reads these lines, too.
func bare(text string) string { return strings.ReplaceAll(text, ",", "") }

func figureOr[T int | uint64](known bool, n T) string {
	if !known {
		return "n/a"
	}
	return bare(phrase.Number(n))
}

// JSONLines writes such documents, one a line and interval.
type JSONLines struct {
	w    io.Writer
	pace pace
}

// NewJSONLines writes to w, each line an interval after the one before.
func NewJSONLines(w io.Writer, interval time.Duration) *JSONLines {
	return &JSONLines{w, pace{interval: interval}}
}

// Add takes a snapshot, and writes it when it is time.
func (o *JSONLines) Add(s *model.Snapshot) error {
	if o.pace.steps(s.Time) == 0 {
		return nil
	}
	return render.Document(o.w, api.NewSnapshot(s), "")
}
