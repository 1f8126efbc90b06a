package loadreport

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// outcomes are all clients of the run by how they ended, nothing where that is not known.
func outcomes(c *api.RunClients) (out []part) {
	if c == nil || c.Offered == 0 {
		return nil
	}
	value := func(n *uint64) uint64 {
		if n == nil {
			return 0
		}
		return *n
	}
	type ended struct {
		name, class string
		n           uint64
	}
	all := []ended{
		{"served", "service", c.Served},
		{"gave up connecting", "queued", c.GaveUp},
		{"waited and never got in", "waiting", c.Stalled},
		{"got in and gave up waiting", "closed", c.GaveUpInside()},
		{"closed by the server without an answer", "ended", c.Closed},
		{"reset", "reset", c.Reset},
		{"refused", "refused", c.Refused},
		{"connected and sent nothing", "idle", value(c.Checks)},
		{"half open", "half", c.HalfOpen},
		{"not known", "unclassified", c.Unknown()},
	}
	var sum, before uint64
	for _, e := range all {
		sum += e.n
	}
	for _, e := range all {
		if e.n > 0 {
			out = append(out, part{e.name, e.class, phrase.Number(e.n), hundredths(before, sum), hundredths(e.n, sum)})
			before += e.n
		}
	}
	return out
}

func hundredths(n, of uint64) string {
	return strconv.FormatFloat(100*float64(n)/float64(max(1, of)), 'f', 2, 64)
}

// settings are those in force, beside the smallest that would have served the load.
func settings(l *api.RunListener) (out []settingView, proposed bool) {
	var smallest, twice *api.RunLimits
	if s := l.Settings; s != nil {
		smallest, twice = s.Smallest, s.ForTwice
	}
	for _, s := range l.InForce {
		v := settingView{Name: s.Name, Value: phrase.Number(max(0, s.Value)), Source: s.Source, Note: s.Note}
		if s.Value < 0 {
			v.Value = "no limit"
		}
		if n := limitOf(smallest, s.Name); n > 0 {
			v.Smallest, v.Raised, proposed = phrase.Number(n), s.Value >= 0 && n > s.Value, true
		}
		if n := limitOf(twice, s.Name); n > 0 {
			v.Twice = phrase.Number(n)
		}
		out = append(out, v)
	}
	return out, proposed
}

// limitOf is a limit by Tomcat's name for it, 0 for none.
func limitOf(l *api.RunLimits, name string) int {
	switch {
	case l == nil:
	case name == "maxThreads":
		return l.Threads
	case name == "maxConnections":
		return l.MaxConnections
	case name == "acceptCount":
		return l.AcceptCount
	}
	return 0
}
