package runreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// ListenerOf finds the same port in another run; nil where it is not there, or there is none.
func ListenerOf(r *api.Run, l *api.RunListener) *api.RunListener {
	if r == nil {
		return nil
	}
	for i := range r.Listeners {
		if r.Listeners[i].Port == l.Port {
			return &r.Listeners[i]
		}
	}
	return nil
}

// Change is a figure of two tests of one port. Note says how far they are apart, and what of
// it is noise.
type Change struct{ Name, Before, Now, Note string }

// Comparison is what two tests of one port came to, a line for each figure that both have.
func Comparison(before, now *api.RunListener) (out []Change) {
	words := func(name, was, is string) {
		note := "the same"
		if was != is {
			note = "another"
		}
		if was != "" || is != "" {
			out = append(out, Change{name, orNone(was), orNone(is), note})
		}
	}
	words("status", before.Status, now.Status)
	words("cause", before.Cause, now.Cause)
	b, n := figuresOf(before), figuresOf(now)
	for _, f := range runFigures() {
		vb, vn := valuesOf(b, f.of), valuesOf(n, f.of)
		if len(vb) > 0 && len(vn) > 0 {
			out = append(out, runChange(f.name, f.unit, loadtest.Compare(vb, vn)))
		}
	}
	for _, s := range now.InForce {
		for _, was := range before.InForce {
			if was.Name == s.Name && was.Value != s.Value {
				words(s.Name, limitValue(was.Value), limitValue(s.Value))
			}
		}
	}
	return out
}

// runFigure is a number of a run that is compared.
type runFigure struct {
	name, unit string
	of         func(*api.RunFigures) *float64
}

func runFigures() []runFigure {
	return []runFigure{
		{"clients", "", figure(func(f *api.RunFigures) *uint64 { return f.Offered })},
		{"served", "", figure(func(f *api.RunFigures) *uint64 { return f.Served })},
		{"turned away", "", figure(func(f *api.RunFigures) *uint64 { return f.TurnedAway })},
		{"packets dropped", "", figure(func(f *api.RunFigures) *uint64 { return &f.DroppedPackets })},
		{"served a second", "/s", func(f *api.RunFigures) *float64 { return f.ServedPerSecond }},
		{"served all up to", "/s", func(f *api.RunFigures) *float64 { return f.KneePerSecond }},
		{"first byte, half of them within", " s", func(f *api.RunFigures) *float64 { return f.FirstByteP50 }},
		{"first byte, 99 of 100 within", " s", func(f *api.RunFigures) *float64 { return f.FirstByteP99 }},
		{"clients inside, at most", "", figure(func(f *api.RunFigures) *int { return f.HighestInside })},
		{"requests in service, at most", "", figure(func(f *api.RunFigures) *int { return f.HighestInService })},
		{"accept queue, at most", "", figure(func(f *api.RunFigures) *int { return &f.HighestAcceptQueue })},
	}
}

func figure[N int | uint64](of func(*api.RunFigures) *N) func(*api.RunFigures) *float64 {
	return func(f *api.RunFigures) *float64 {
		if n := of(f); n != nil {
			return new(float64(*n))
		}
		return nil
	}
}

// figuresOf are those of each run of a test.
func figuresOf(l *api.RunListener) []api.RunFigures {
	if len(l.Repeats) > 0 {
		return l.Repeats
	}
	return []api.RunFigures{l.Figures(courseSeconds(l))}
}

func courseSeconds(l *api.RunListener) float64 {
	if n := len(l.Course.Points); n > 0 {
		return l.Course.Points[n-1].T + l.Course.WidthSeconds
	}
	return 0
}

func valuesOf(all []api.RunFigures, of func(*api.RunFigures) *float64) (out []float64) {
	for i := range all {
		if v := of(&all[i]); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

func runChange(name, unit string, d loadtest.Difference) Change {
	out := Change{Name: name, Before: measure(d.Before) + unit, Now: measure(d.Now) + unit}
	apart := d.Now - d.Before
	switch {
	case apart == 0:
		out.Note = "the same"
		return out
	case d.Before == 0:
		out.Note = "now " + measure(d.Now) + unit
	default:
		out.Note = fmt.Sprintf("%+.1f %%", 100*apart/d.Before)
	}
	switch {
	case !d.Known:
		out.Note += ", from one run each"
	case d.Real():
		out.Note += fmt.Sprintf(", more than the runs' own variation (±%s%s)", measure(d.Spread), unit)
	default:
		out.Note += fmt.Sprintf(", within the runs' own variation (±%s%s)", measure(d.Spread), unit)
	}
	return out
}

func measure(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return phrase.Number(int(math.Round(v)))
	case a >= 100:
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	case a >= 1:
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

func limitValue(n int) string {
	if n < 0 {
		return "no limit"
	}
	return phrase.Number(n)
}

// Changes is what differs between two tests of one port, a line each.
func Changes(before, now *api.RunListener) (out []string) {
	for _, c := range Comparison(before, now) {
		if c.Before != c.Now {
			line := c.Name + ": " + c.Before + " before, " + c.Now + " now"
			if c.Note != "another" {
				line += " (" + c.Note + ")"
			}
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		return []string{"the same"}
	}
	return out
}

func orNone(cause string) string {
	if cause == "" {
		return "none"
	}
	return cause
}

// Variation is how much the runs of a test vary among themselves, a line for each figure;
// nothing where it was run once.
func Variation(l *api.RunListener) (out []string) {
	if len(l.Repeats) < 2 {
		return nil
	}
	for _, f := range runFigures() {
		values := valuesOf(l.Repeats, f.of)
		if mean, spread := loadtest.MeanError(values); len(values) > 1 && mean > 0 {
			out = append(out, fmt.Sprintf("%s: %s ± %s%s, from %s to %s", f.name, measure(mean), measure(spread), f.unit, measure(slices.Min(values)), measure(slices.Max(values))))
		}
	}
	return out
}
