package story

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Filling is how the accept queue became full before the first packet was dropped,
// or for the first time where none was. Each is the time of a sample, or zero where
// none shows it.
type Filling struct {
	Rising  time.Time // the first that saw somebody in it after it was empty
	Full    time.Time
	Dropped time.Time // the first before which a packet was dropped
	Room    int       // connections that it holds
}

// Filling is nil where the samples show neither a full queue nor a dropped packet.
func (s *Story) Filling() *Filling {
	var first, latest *Filling
	var rising time.Time
	empty, full := false, false
	for at, r := range s.eachRun {
		switch {
		case r.Length == 0:
			rising, empty = time.Time{}, true
		case empty:
			rising, empty = at, false
		}
		if was := full; !was {
			latest = nil
		}
		if full = s.Room > 0 && int(r.Length) >= s.Room; full && latest == nil {
			latest = &Filling{Rising: rising, Full: at, Room: s.Room}
			first = cmp.Or(first, latest)
		}
		if r.Dropped > 0 {
			out := Filling{Room: s.Room}
			if full {
				out = *latest
			}
			out.Dropped = at
			return &out
		}
	}
	return first
}

// eachRun yields the runs of all samples, each with its time.
func (s *Story) eachRun(yield func(time.Time, recording.Run) bool) {
	for i := range s.Samples {
		for _, r := range s.Samples[i].Runs {
			if !yield(time.UnixMilli(s.Samples[i].From+r.At), r) {
				return
			}
		}
	}
}

// Moment is how a report writes a time among samples.
const Moment = "15:04:05.000"

// Start is when to begin to look: two seconds before the full queue or the first drop,
// earlier where it filled for longer, but for eight seconds at most.
func (f *Filling) Start() time.Time {
	end := f.Full
	if end.IsZero() {
		end = f.Dropped
	}
	before := 2 * time.Second
	if took := end.Sub(f.Rising); !f.Rising.IsZero() {
		before = min(max(before, took+time.Second/2), 8*time.Second)
	}
	return end.Add(-before)
}

// String says it in a sentence.
func (f *Filling) String() string {
	var parts []string
	add := func(t time.Time, what string) {
		if !t.IsZero() {
			parts = append(parts, what+" at "+t.UTC().Format(Moment))
		}
	}
	if !f.Rising.Equal(f.Full) {
		add(f.Rising, "the first client waited in the empty accept queue")
	}
	add(f.Full, phrase.Sprintf("the queue was full (%d)", f.Room))
	if took := f.Full.Sub(f.Rising); took > 0 && !f.Rising.IsZero() {
		parts[len(parts)-1] += ", " + phrase.Seconds(took) + " later"
	}
	add(f.Dropped, "the first packet was dropped")
	return phrase.Capital(strings.Join(parts, "; ")) + "."
}

// filled says since when each stage was full when the trouble began, the first one
// first: what was full first is where to begin.
func (s *Story) filled() []string {
	began := s.Header.Began.Unix()
	var since [recording.NumStages]int64
	for _, p := range s.Points {
		for i, used := range p.Used {
			switch {
			case used < 100 && p.At <= began:
				since[i] = 0
			case used >= 100 && since[i] == 0 && p.At <= began+fillsAfter:
				since[i] = p.At
			}
		}
	}
	var out []string
	full := [recording.NumStages]string{"all of maxConnections were in use", "all threads were busy", "all open files were in use", "all ephemeral ports were in use"}
	order := []int{0, 1, 2, 3}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(since[i], since[j]) })
	for _, i := range order {
		if since[i] == 0 {
			continue
		}
		from := " from " + time.Unix(since[i], 0).UTC().Format(time.TimeOnly)
		if since[i] == s.Points[0].At {
			from = " when the recording begins"
		}
		out = append(out, full[i]+from)
	}
	return out
}

// fillsAfter is how many seconds after the trouble began a stage may fill that
// belongs to its beginning.
const fillsAfter = 10
