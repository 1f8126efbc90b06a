package recording

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"reflect"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// KeyEvery is how many frames apart a whole one is written, from which a reader
// continues after a damaged one.
const KeyEvery = 60

// Line is a record as it is written: its checksum (CRC-32C), the record, and the
// end of the line. What was torn off has no end or another sum.
type Line struct {
	Begin *Header         `json:"begin"`
	Key   json.RawMessage `json:"key"`  // a whole frame
	Next  json.RawMessage `json:"next"` // a merge patch on the frame before
	Tick  *Tick           `json:"tick"`
	End   *End            `json:"end"`
}

// Checksum is the CRC-32C of a record.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// Encode is the line with its checksum before it.
func (l Line) Encode() ([]byte, error) {
	body, err := encode(l)
	if err != nil {
		return nil, fmt.Errorf("incident: %w", err)
	}
	return append(fmt.Appendf(nil, "%08x ", Checksum(body)), append(body, '\n')...), nil
}

// Encoder makes lines of frames: the first whole, the others by what has changed.
type Encoder struct {
	last    any           // the frame before, as a document
	verdict model.Verdict // of the frame before
	next    int           // frames until a whole one
}

// Gap has the next frame written whole: one before it was not written.
func (e *Encoder) Gap() { e.next = 0 }

// Frame is the line of a frame.
func (e *Encoder) Frame(f *Frame) ([]byte, error) {
	if e.next > 0 {
		f = f.withoutShown(&e.verdict)
	}
	e.verdict = f.Listener.Verdict
	now := moment(f.Moment).document(reflect.ValueOf(f))
	if e.next == 0 {
		body, err := json.Marshal(now)
		if err != nil {
			return nil, fmt.Errorf("incident: %w", err)
		}
		e.last, e.next = now, KeyEvery
		return Line{Key: body}.Encode()
	}
	change := diff(e.last, now)
	if change == nil {
		change = struct{}{}
	}
	body, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("incident: %w", err)
	}
	e.last = now
	e.next--
	return Line{Next: body}.Encode()
}

// withoutShown leaves out the verdict that was shown before, where it is that of
// the frame before.
func (f *Frame) withoutShown(last *model.Verdict) *Frame {
	b := f.Listener.Basis
	if b == nil || b.Shown == nil || !reflect.DeepEqual(b.Shown.Verdict, *last) {
		return f
	}
	out, basis, shown := *f, *b, *b.Shown
	shown.Verdict = model.Verdict{}
	basis.Shown, out.Listener.Basis, out.SameShown = &shown, &basis, true
	return &out
}

// diff is the JSON merge patch (RFC 7396) that makes one document of another,
// nil where they are equal. What is nil is taken for absent.
func diff(from, to any) any {
	was, object := from.(map[string]any)
	is, still := to.(map[string]any)
	if !object || !still {
		if reflect.DeepEqual(from, to) {
			return nil
		}
		return to
	}
	patch := make(map[string]any)
	for name, value := range is {
		if change := diff(was[name], value); change != nil {
			patch[name] = change
		}
	}
	for name := range was {
		if is[name] == nil && was[name] != nil {
			patch[name] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// merge applies a merge patch (RFC 7396) to a document.
func merge(document, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := document.(map[string]any)
	if !ok {
		out = make(map[string]any, len(changes))
	}
	for name, value := range changes {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = merge(out[name], value)
	}
	return out
}
