package main

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

// Read implements io.Reader. Behind io.EOF there may be more at another time.
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

// following is a recording that is read as it grows.
type following struct {
	id      string
	cluster string
	lines   *wholeLines
	reader  *recording.Reader // nil before the first record is whole
	summary recording.Summary
	place   place
	last    *recording.Frame
	cause   model.Cause // of the latest record
	changes int
	number  int       // of the next event
	written time.Time // when a change of the file was seen last
	changed time.Time // of that change, by the file system
	size    int64
}

func newFollowing(id, cluster string, file *os.File, now time.Time) *following {
	return &following{id: id, cluster: cluster, lines: &wholeLines{file: file}, written: now}
}

func (f *following) close() { _ = f.lines.file.Close() }

// read takes what was written since, and returns the events in it but the end. ended says
// that the recording has its last record.
func (f *following) read(now time.Time) (events []event, ended bool, err error) {
	if f.reader == nil {
		if err := f.lines.extend(); err != nil || f.lines.until == 0 {
			f.noteChange(now)
			return nil, false, err
		}
		if f.reader, err = recording.NewReader(f.lines); err != nil {
			return nil, false, err
		}
		f.reader.Header.ID = f.id // its name is its own, whatever is written in it
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

func (f *following) noteChange(now time.Time) {
	if f.lines.size != f.size || !f.lines.changed.Equal(f.changed) {
		f.size, f.changed, f.written = f.lines.size, f.lines.changed, now
	}
}

// see makes an event of the first frame, and of one in trouble with another cause.
func (f *following) see(frame *recording.Frame) *event {
	f.summary.See(frame)
	first := f.last == nil
	f.last = frame
	v := &frame.Listener.Verdict
	if first {
		f.place = placeOf(f.cluster, &f.reader.Header, &frame.Listener)
		f.cause = v.Cause
		return f.event(eventBegin, frame)
	}
	if v.Status < model.StatusSaturated || v.Cause == model.CauseNone || v.Cause == f.cause || f.changes == maxChanges {
		return nil
	}
	f.changes++
	f.cause = v.Cause
	return f.event(eventChange, frame)
}

// event is one at a frame, by the verdict of that moment.
func (f *following) event(kind string, frame *recording.Frame) *event {
	v, h := &frame.Listener.Verdict, &f.reader.Header
	e := f.about(kind, frame.At)
	e.Status, e.Cause, e.Severe = v.Status.String(), bounded(string(v.Cause)), v.Status > model.StatusSaturated
	e.Lasted = max(0, frame.At.Sub(h.Began))
	a := v.Answer
	if a.What == "" { // of a recording without an answer
		a.What = v.Summary
	}
	e.Body = bodyOf(&a)
	return e
}

// end is the event of a recording that has ended, by the whole of it.
func (f *following) end(s *story.Story) *event {
	sum := &s.Summary
	e := f.about(eventEnd, sum.Ended)
	e.Status, e.Cause, e.Severe = sum.Status.String(), bounded(string(sum.Cause)), sum.Status > model.StatusSaturated
	e.Reason, e.Lasted = bounded(sum.Reason), sum.Duration()
	e.Turned, e.Dropped = sum.TurnedAway, sum.Dropped
	a := s.Answer()
	e.Body = bodyOf(&a)
	return e
}

func (f *following) about(kind string, at time.Time) *event {
	h := &f.reader.Header
	e := &event{
		UID: uidOf(h, f.number), Kind: kind, Number: f.number, At: at, Incident: f.id, Place: f.place,
		Address: bounded(h.Address), Port: h.Port, Turned: f.summary.TurnedAway, Dropped: f.summary.Dropped, Version: bounded(h.Version),
	}
	if f.last != nil && f.last.Listener.Process != nil {
		e.PID = f.last.Listener.Process.PID
	}
	f.number++
	return e
}
