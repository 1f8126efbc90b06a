package incident

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"reflect"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// keyEvery is how many frames apart a whole one is written, from which a reader
// continues after a damaged one.
const keyEvery = 60

// line is a record as it is written: its checksum (CRC-32C), the record, and the
// end of the line. What was torn off has no end or another sum.
type line struct {
	Begin *Header         `json:"begin,omitempty"`
	Key   json.RawMessage `json:"key,omitempty"`  // a whole frame
	Next  json.RawMessage `json:"next,omitempty"` // a merge patch on the frame before
	Tick  *Tick           `json:"tick,omitempty"`
	End   *End            `json:"end,omitempty"`
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func (l line) encode() ([]byte, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("incident: %w", err)
	}
	return append(fmt.Appendf(nil, "%08x ", checksum(body)), append(body, '\n')...), nil
}

// encoder makes lines of frames: the first whole, the others by what has changed.
type encoder struct {
	last    json.RawMessage
	verdict model.Verdict // of the frame before
	next    int           // frames until a whole one
}

// gap has the next frame written whole: one before it was not written.
func (e *encoder) gap() { e.next = 0 }

func (e *encoder) frame(f *Frame) ([]byte, error) {
	if e.next > 0 {
		f = f.withoutShown(&e.verdict)
	}
	e.verdict = f.Listener.Verdict
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("incident: %w", err)
	}
	if e.next == 0 {
		e.last, e.next = body, keyEvery
		return line{Key: body}.encode()
	}
	change, err := diff(e.last, body)
	if err != nil {
		return nil, fmt.Errorf("incident: %w", err)
	}
	if change == nil {
		change = json.RawMessage("{}")
	}
	e.last = body
	e.next--
	return line{Next: change}.encode()
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
