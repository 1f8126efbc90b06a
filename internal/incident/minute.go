package incident

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// minute is how long a ring keeps samples.
	minute = time.Minute
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
	p := pack(coarser(later(s, m.last)))
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

// runsPerSecond is how many runs are kept: as many as the usual samples of a queue that changes with each, and their
// drops. A minute of more is not taken by a reader, see recording.MaxValues.
const runsPerSecond = 150

// coarser is the same with every two runs as one, with the longer queue and the drops of both, until there
// are not too many.
func coarser(s *model.QueueSamples) *model.QueueSamples {
	most := 2 + int(runsPerSecond*s.To.Sub(s.From).Seconds())
	if len(s.Runs) <= most {
		return s
	}
	out := &model.QueueSamples{From: s.From, To: s.To, Runs: model.Halved(slices.Clone(s.Runs))}
	for len(out.Runs) > most {
		out.Runs = model.Halved(out.Runs)
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

func (p *part) unpack() *recording.Samples {
	out := &recording.Samples{From: p.from, To: p.to}
	length := int64(0)
	at := int64(0)
	for rest := p.runs; len(rest) > 0; {
		later, n := binary.Uvarint(rest)
		change, m := binary.Varint(rest[n:])
		dropped, k := binary.Uvarint(rest[n+m:])
		rest = rest[n+m+k:]
		at, length = at+int64(later), length+change
		out.Runs = append(out.Runs, recording.Run{At: at, Length: uint32(length), Dropped: uint32(dropped)})
	}
	return out
}

// after are the samples later than a moment.
func (m *minuteOf) after(moment int64) (out []recording.Samples) {
	for i := range m.parts {
		if m.parts[i].to <= moment {
			continue
		}
		if s := m.parts[i].unpack().After(moment); s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// packed is a point as a ring keeps it: 36 bytes, and no pointer for the garbage
// collector.
type packed struct {
	at                     uint32 // Unix seconds, until 2106
	drops                  uint32
	peak, inside, inFlight int32
	used                   [recording.NumStages]int8
	status, cause          uint8 // cause: its place in causes
	clients                recording.Rate
}

// causes are those that a packed point may have, the first for none.
func causes() []model.Cause { return append([]model.Cause{model.CauseNone}, model.DropCauses()...) }

func packPoint(p recording.Point) packed {
	return packed{
		at: uint32(p.At), drops: p.Drops, peak: p.Peak, inside: p.Inside, inFlight: p.InFlight,
		used: p.Used, status: uint8(p.Status), cause: uint8(max(0, slices.Index(causes(), p.Cause))), clients: p.Clients,
	}
}

func (s packed) unpack(causes []model.Cause) recording.Point {
	return recording.Point{
		At: int64(s.at), Status: model.Status(s.status), Drops: s.drops, Cause: causes[s.cause],
		Peak: s.peak, Inside: s.inside, InFlight: s.inFlight, Used: s.used, Clients: s.clients,
	}
}
