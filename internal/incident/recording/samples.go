package recording

import (
	"encoding/json"
	"errors"
	"time"
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

// UnmarshalJSON refuses what no queue can have done. Agents have written runs that began before the one before
// them, or after the end: those begin with it.
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
		if queue != int64(uint32(queue)) || dropped != int64(uint32(dropped)) {
			return errSamples
		}
		at += min(max(later, 0), length-at)
		s.Runs = append(s.Runs, Run{At: at, Length: uint32(queue), Dropped: uint32(dropped)})
	}
	return nil
}

// After is what comes after a moment, nil where nothing does. A run that began before
// has its drops there.
func (s *Samples) After(moment int64) *Samples {
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

// longestSamples is more than one stretch can have: a calm one ends when the
// ring has forgotten where it began.
const longestSamples = 10 * time.Minute
