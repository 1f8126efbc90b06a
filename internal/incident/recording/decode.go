package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What is read of a recording is bounded: anybody may have written it. Some bytes
// can repeat a large frame, so that the frames have a bound of their own: real
// ones are two to five times as large as their file.
const (
	MaxRecording = 8 << 20 // one in a directory
	maxLine      = 1 << 20
	MaxFrames    = 50_000
	MaxRead      = 2 * MaxRecording
	// MaxSamples bounds how many runs a report draws: a recording has some thousands.
	MaxSamples = 200_000
)

// ErrForeign says that something is no recording.
var ErrForeign = errors.New("not a recording of tcpdiag")

// ErrNewer says that a later version recorded it, whose format this one does not know.
var ErrNewer = errors.New("recorded by a later version of tcpdiag")

// ErrLarge says that a file is not read to its end.
var ErrLarge = errors.New("larger than a recording of tcpdiag can be")

// Reader reads the whole frames of a recording.
type Reader struct {
	Header Header
	End    *End // nil before it was read, and where the recording has none

	// Damaged are records that could not be read, and those that depended on them.
	Damaged int
	// Torn: the last record was not written to its end.
	Torn bool

	// Behind is what came behind the last frame that was read.
	Behind Tick

	format   int
	stands   stands
	rest     *io.LimitedReader
	lines    *bufio.Reader
	document any // the frame before; nil where the next must be whole
	verdict  model.Verdict
	frames   int
	weight   int // of all frames
	runs     int // in the samples of ticks
}

// NewLines is a reader that has not read the header.
func NewLines(in io.Reader) *Reader {
	rest := &io.LimitedReader{R: in, N: MaxRead + 1}
	return &Reader{rest: rest, lines: bufio.NewReaderSize(rest, 64<<10)}
}

// NewReader reads the first record.
func NewReader(r io.Reader) (*Reader, error) {
	out := NewLines(r)
	l, err := out.Line()
	if err != nil || l.Begin == nil {
		return nil, ErrForeign
	}
	out.Header = *l.Begin
	version, ours := strings.CutPrefix(out.Header.Schema, schemaName)
	out.format, err = strconv.Atoi(version)
	switch {
	case !ours || err != nil || out.format < 1:
		return nil, fmt.Errorf("%w: it is of schema %.40q, this program reads %s", ErrForeign, out.Header.Schema, Schema)
	case out.format > latest:
		return nil, fmt.Errorf("%w (%.40s): it is of format %d, this program reads formats up to %d", ErrNewer,
			cmp.Or(model.Printable(out.Header.Version), "unknown"), out.format, latest)
	}
	return out, nil
}

var (
	errDamaged = errors.New("damaged record")
	errTorn    = errors.New("torn record")
)

// Next is the next frame; io.EOF behind the last.
func (r *Reader) Next() (*Frame, error) {
	for r.frames < MaxFrames && r.weight <= maxFrameSum {
		l, err := r.Line()
		switch {
		case errors.Is(err, errTorn):
			r.Torn = true
			return nil, io.EOF
		case errors.Is(err, errDamaged):
			r.damaged()
			continue
		case err != nil:
			return nil, err
		case l.End != nil:
			r.End = l.End
			continue
		case l.Tick != nil && r.tick(l.Tick):
			continue
		}
		if f := r.frame(l); f != nil {
			r.frames++
			f.Points = append(r.Behind.Points, f.Points...)
			f.Samples = append(r.Behind.Samples, f.Samples...)
			r.Behind = Tick{}
			return f, nil
		}
		r.damaged()
	}
	return nil, ErrLarge
}

// tick takes seconds and samples, as many as a recording may have between two frames.
func (r *Reader) tick(t *Tick) bool {
	if t.check() != nil || len(r.Behind.Points) >= MaxFrames || len(r.Behind.Samples) >= MaxFrames || r.runs > MaxSamples {
		return false
	}
	for i := range t.Samples {
		r.runs += len(t.Samples[i].Runs)
	}
	b := &r.Behind
	b.At, b.Points, b.Samples = t.At, append(b.Points, t.Points...), append(b.Samples, t.Samples...)
	if t.Counted != nil {
		b.Counted = t.Counted
	}
	return true
}

func (r *Reader) damaged() {
	r.Damaged++
	r.document = nil
}

// frame is nil where the record makes none.
func (r *Reader) frame(l *Line) *Frame {
	patch, whole := l.Key, true
	if patch == nil {
		patch, whole = l.Next, false
	}
	if patch == nil || !whole && r.document == nil {
		return nil
	}
	change, err := parse(patch)
	if err != nil {
		return nil
	}
	if whole {
		r.document = nil
	}
	r.document = merge(r.document, change)
	f := new(Frame)
	weight, err := fill(r.document, f)
	r.weight += weight
	if err != nil || f.check() != nil {
		return nil
	}
	if r.format < 2 {
		r.stands.see(f)
	}
	if b := f.Listener.Basis; f.SameShown && b != nil && b.Shown != nil {
		b.Shown.Verdict, f.SameShown = r.verdict, false
	}
	r.verdict = f.Listener.Verdict
	return f
}

// Line reads a record and compares its sum.
func (r *Reader) Line() (*Line, error) {
	raw, err := r.raw()
	if err != nil {
		return nil, err
	}
	sum, body, found := bytes.Cut(raw, []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !found || err != nil || uint32(want) != Checksum(body) {
		return nil, errDamaged
	}
	if !Measured(body) {
		return nil, errDamaged
	}
	var records struct{ Begin, Key, Next, Tick, End json.RawMessage }
	if err := json.Unmarshal(body, &records); err != nil {
		return nil, errDamaged
	}
	begin, errBegin := record[Header](records.Begin)
	tick, errTick := record[Tick](records.Tick)
	end, errEnd := record[End](records.End)
	if errors.Join(errBegin, errTick, errEnd) != nil {
		return nil, errDamaged
	}
	return &Line{Begin: begin, Key: records.Key, Next: records.Next, Tick: tick, End: end}, nil
}

// record is nil where the line is another.
func record[T any](text json.RawMessage) (*T, error) {
	if text == nil {
		return nil, nil
	}
	out := new(T)
	return out, decode(text, out)
}

// raw is a line without its end. One that is too long is passed over.
func (r *Reader) raw() ([]byte, error) {
	var out []byte
	for long := false; ; {
		part, err := r.lines.ReadSlice('\n')
		if long = long || len(out)+len(part) > maxLine; !long {
			out = append(out, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && r.rest.N == 0:
			return nil, ErrLarge
		case errors.Is(err, io.EOF) && len(out) == 0 && !long:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, errTorn
		case err != nil:
			return nil, fmt.Errorf("incident: %w", err)
		case long:
			return nil, errDamaged
		case len(out) == 1: // nothing
			out = nil
			continue
		}
		return bytes.TrimSuffix(out, []byte("\n")), nil
	}
}
