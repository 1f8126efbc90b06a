package records

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxChanges bounds the records of an incident whose cause changes to and fro.
const maxChanges = 100

// wholeLines reads a file that is being written, up to the end of its last line: what
// is behind that is not a record yet.
type wholeLines struct {
	file      *os.File
	at, until int64
	size      int64
	changed   time.Time // by the file system
}

// Read implements io.reader. Behind io.EOF there may be more at another time.
func (w *wholeLines) Read(p []byte) (int, error) {
	if w.at == w.until {
		if err := w.extend(); err != nil {
			return 0, err
		}
	}
	if w.at == w.until {
		return 0, io.EOF
	}
	n, err := w.file.ReadAt(p[:min(int64(len(p)), w.until-w.at)], w.at)
	w.at += int64(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// extend looks for the last end of a line behind what was read, from the end of the file.
func (w *wholeLines) extend() error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	w.size, w.changed = info.Size(), info.ModTime()
	var part [64 << 10]byte
	for to := w.size; to > w.until; {
		from := max(w.until, to-int64(len(part)))
		n, err := w.file.ReadAt(part[:to-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if i := bytes.LastIndexByte(part[:n], '\n'); i >= 0 {
			w.until = from + int64(i) + 1
			return nil
		}
		to = from
	}
	return nil
}

// Recording is a recording that is read as it grows.
type Recording struct {
	ID      string
	cluster string
	lines   *wholeLines
	reader  *recording.Reader // nil before the first record is whole
	summary recording.Summary
	origin  Origin
	last    *recording.Frame
	cause   model.Cause // of the latest record
	changes int
	number  int       // of the next event
	Written time.Time // when a change of the file was seen last
	changed time.Time // of that change, by the file system
	size    int64
}

// Follow begins with a recording, whose file it closes.
func Follow(id, cluster string, file *os.File, now time.Time) *Recording {
	return &Recording{ID: id, cluster: cluster, lines: &wholeLines{file: file}, Written: now}
}

// Close ends it.
func (f *Recording) Close() { _ = f.lines.file.Close() }

// Empty reports whether it holds no frame yet.
func (f *Recording) Empty() bool { return f.last == nil }

// Owner is whose share of the spool it takes, once it has a frame.
func (f *Recording) Owner() string { return f.origin.Owner() }

// Key is the name of its object, once it has a frame.
func (f *Recording) Key() string { return KeyOf(&f.origin, &f.reader.Header) }

// Whole is all that has been written of it.
func (f *Recording) Whole() ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f.lines.file, 0, MaxObject))
}

// Read takes what was written since, and returns the events in it but the end. ended says
// that the recording has its last record.
func (f *Recording) Read(now time.Time) (events []Event, ended bool, err error) {
	if f.reader == nil {
		if err := f.lines.extend(); err != nil || f.lines.until == 0 {
			f.noteChange(now)
			return nil, false, err
		}
		if f.reader, err = recording.NewReader(f.lines); err != nil {
			return nil, false, err
		}
		f.reader.Header.ID = f.ID // its name is its own, whatever is written in it
		f.summary = f.reader.Header.Summary()
	}
	for f.reader.End == nil {
		frame, err := f.reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return events, false, err
		}
		if e := f.see(frame); e != nil {
			events = append(events, *e)
		}
	}
	f.noteChange(now)
	return events, f.reader.End != nil, nil
}

func (f *Recording) noteChange(now time.Time) {
	if f.lines.size != f.size || !f.lines.changed.Equal(f.changed) {
		f.size, f.changed, f.Written = f.lines.size, f.lines.changed, now
	}
}

// see makes an event of the first frame, and of one in trouble with another cause.
func (f *Recording) see(frame *recording.Frame) *Event {
	f.summary.See(frame)
	first := f.last == nil
	f.last = frame
	v := &frame.Listener.Verdict
	if first {
		f.origin = OriginOf(f.cluster, &f.reader.Header, &frame.Listener)
		f.cause = v.Cause
		return f.event(EventBegin, frame)
	}
	if v.Status < model.StatusSaturated || v.Cause == model.CauseNone || v.Cause == f.cause || f.changes == maxChanges {
		return nil
	}
	f.changes++
	f.cause = v.Cause
	return f.event(eventChange, frame)
}

// event is one at a frame, by the verdict of that moment.
func (f *Recording) event(kind string, frame *recording.Frame) *Event {
	v, h := &frame.Listener.Verdict, &f.reader.Header
	e := f.about(kind, frame.At)
	e.Status, e.Cause, e.Severe = v.Status.String(), Printable(string(v.Cause)), v.Status > model.StatusSaturated
	e.Lasted = max(0, frame.At.Sub(h.Began))
	a := v.Answer
	if a.What == "" { // of a recording without an answer
		a.What = v.Summary
	}
	e.Body = bodyOf(&a)
	return e
}

// End is the event of a recording that has ended, by the whole of it.
func (f *Recording) End(s *story.Story) *Event {
	sum := &s.Summary
	e := f.about(EventEnd, sum.Ended)
	e.Status, e.Cause, e.Severe = sum.Status.String(), Printable(string(sum.Cause)), sum.Status > model.StatusSaturated
	e.Reason, e.Lasted = Printable(sum.Reason), sum.Duration()
	e.Turned, e.Dropped = sum.TurnedAway, sum.Dropped
	a := s.Answer()
	e.Body = bodyOf(&a)
	return e
}

func (f *Recording) about(kind string, at time.Time) *Event {
	h := &f.reader.Header
	e := &Event{
		UID: uidOf(h, f.number), Kind: kind, Number: f.number, At: at, Incident: f.ID, Origin: f.origin,
		Address: Printable(h.Address), Port: h.Port, Turned: f.summary.TurnedAway, Dropped: f.summary.Dropped, Version: Printable(h.Version),
	}
	if f.last != nil && f.last.Listener.Process != nil {
		e.PID = f.last.Listener.Process.PID
	}
	f.number++
	return e
}
