package incident

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Samples are a stretch of the accept queue's samples without a gap, as they are
// written: each run holds until the next one begins, the last until To.
type Samples struct {
	From, To int64 // Unix milliseconds
	Runs     []Run
}

// Run is a stretch of samples that saw the same.
type Run struct {
	At      int64 // milliseconds since Samples.From
	Length  uint32
	Dropped uint32 // packets, when it began
}

// samplesJSON has three numbers for each run: milliseconds since the run before,
// length, packets dropped.
type samplesJSON struct {
	From int64   `json:"from"`
	To   int64   `json:"to"`
	Runs []int64 `json:"runs"`
}

// MarshalJSON writes the runs one after the other, see samplesJSON.
func (s Samples) MarshalJSON() ([]byte, error) {
	out := samplesJSON{From: s.From, To: s.To, Runs: make([]int64, 0, 3*len(s.Runs))}
	last := int64(0)
	for _, r := range s.Runs {
		out.Runs = append(out.Runs, r.At-last, int64(r.Length), int64(r.Dropped))
		last = r.At
	}
	return json.Marshal(out)
}

var errSamples = errors.New("impossible samples")

// UnmarshalJSON refuses what no queue can have done.
func (s *Samples) UnmarshalJSON(b []byte) error {
	var in samplesJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	length := in.To - in.From
	if in.From <= 0 || length < 0 || length > longestSamples.Milliseconds() || len(in.Runs) == 0 || len(in.Runs)%3 != 0 || in.Runs[0] != 0 {
		return errSamples
	}
	*s = Samples{From: in.From, To: in.To, Runs: make([]Run, 0, len(in.Runs)/3)}
	at := int64(0)
	for i := 0; i < len(in.Runs); i += 3 {
		later, queue, dropped := in.Runs[i], in.Runs[i+1], in.Runs[i+2]
		if later < 0 || later > length-at || queue != int64(uint32(queue)) || dropped != int64(uint32(dropped)) {
			return errSamples
		}
		at += later
		s.Runs = append(s.Runs, Run{At: at, Length: uint32(queue), Dropped: uint32(dropped)})
	}
	return nil
}

// after is what comes after a moment, nil where nothing does. A run that began before
// has its drops there.
func (s *Samples) after(moment int64) *Samples {
	if s.To <= moment {
		return nil
	}
	if s.From > moment {
		return s
	}
	out := &Samples{From: moment + 1, To: s.To}
	for _, r := range s.Runs {
		if at := s.From + r.At - out.From; at > 0 {
			out.Runs = append(out.Runs, Run{at, r.Length, r.Dropped})
		} else {
			out.Runs = append(out.Runs[:0], Run{Length: r.Length})
		}
	}
	return out
}

const (
	// minute is how long a ring keeps samples.
	minute = time.Minute
	// longestSamples is more than one stretch can have: a calm one ends when the
	// ring has forgotten where it began.
	longestSamples = 10 * time.Minute
	// sampleGap is how far apart samples are at most that belong together: those of a
	// calm namespace in turns are up to 80 ms apart, and a loaded machine is late.
	sampleGap = 250 * time.Millisecond
)

// minuteOf holds the samples of the last minute in some bytes.
type minuteOf struct {
	parts []part
	last  time.Time // the latest sample, on the monotonic clock
}

// part is one publication's samples, or many that all saw the same.
type part struct {
	from, to int64 // Unix milliseconds
	last     uint32
	steady   bool   // one run, and nothing dropped
	runs     []byte // of each: varints of the milliseconds since the one before, the change of its length, its drops
}

func (m *minuteOf) add(s *model.QueueSamples) {
	if s == nil || !s.To.After(m.last) {
		return
	}
	p := pack(later(s, m.last))
	m.last = s.To
	if n := len(m.parts); n > 0 && m.parts[n-1].continues(&p) {
		m.parts[n-1].to = p.to
	} else {
		m.parts = append(m.parts, p)
	}
	first := 0
	for first < len(m.parts) && m.parts[first].to <= p.to-minute.Milliseconds() {
		first++
	}
	m.parts = append(m.parts[:0], m.parts[first:]...)
	if p := &m.parts[0]; p.steady {
		p.from = max(p.from, m.parts[len(m.parts)-1].to-minute.Milliseconds())
	}
}

// later is what was not seen at a moment yet. The drops of the run that lasts were.
func later(s *model.QueueSamples, seen time.Time) *model.QueueSamples {
	already := seen.Sub(s.From)
	if seen.IsZero() || already < 0 {
		return s
	}
	out := &model.QueueSamples{From: seen, To: s.To}
	for _, r := range s.Runs {
		if r.At > already {
			out.Runs = append(out.Runs, model.QueueRun{At: r.At - already, Length: r.Length, Dropped: r.Dropped})
		} else {
			out.Runs = append(out.Runs[:0], model.QueueRun{Length: r.Length})
		}
	}
	return out
}

func (p *part) continues(next *part) bool {
	return p.steady && next.steady && p.last == next.last && next.from >= p.to && next.from-p.to <= sampleGap.Milliseconds()
}

func pack(s *model.QueueSamples) part {
	p := part{from: s.From.UnixMilli(), steady: len(s.Runs) == 1 && s.Runs[0].Dropped == 0}
	p.to = max(p.from, p.from+s.To.Sub(s.From).Milliseconds())
	at := int64(0)
	for _, r := range s.Runs {
		now := r.At.Milliseconds()
		p.runs = binary.AppendUvarint(p.runs, uint64(now-at))
		p.runs = binary.AppendVarint(p.runs, int64(r.Length)-int64(p.last))
		p.runs = binary.AppendUvarint(p.runs, uint64(r.Dropped))
		at, p.last = now, r.Length
	}
	return p
}

func (p *part) unpack() *Samples {
	out := &Samples{From: p.from, To: p.to}
	length := int64(0)
	at := int64(0)
	for rest := p.runs; len(rest) > 0; {
		later, n := binary.Uvarint(rest)
		change, m := binary.Varint(rest[n:])
		dropped, k := binary.Uvarint(rest[n+m:])
		rest = rest[n+m+k:]
		at, length = at+int64(later), length+change
		out.Runs = append(out.Runs, Run{At: at, Length: uint32(length), Dropped: uint32(dropped)})
	}
	return out
}

// after are the samples later than a moment.
func (m *minuteOf) after(moment int64) (out []Samples) {
	for i := range m.parts {
		if m.parts[i].to <= moment {
			continue
		}
		if s := m.parts[i].unpack().after(moment); s != nil {
			out = append(out, *s)
		}
	}
	return out
}
