package waits

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// peer waits until the backend holds as many requests as can get there, and asks ten
// times. truth is the backend's own number.
func (s *stage) peer(address, cause string, want int, truth func() int) *api.Listener {
	s.Until(fmt.Sprintf("%d requests at the backend, it has %d", want, truth()), func() bool { return truth() >= want })
	s.Until("the threads are busy", func() bool {
		l := s.ask(port)
		return l.Connections != nil && l.Connections.Waiting >= clients-threads-8
	})
	var seen, real []int
	var last *api.Listener
	for range 10 {
		before := truth()
		last = s.ask(port)
		after := truth()
		s.Holds(last.Verdict.Cause == cause, "the cause is %q: %s", last.Verdict.Cause, last.Verdict.Summary)
		s.Holds(strings.Contains(last.Verdict.Summary, address), "%s is not named: %s", address, last.Verdict.Summary)
		n := -1
		if last.Process != nil {
			for _, p := range last.Process.Downstream {
				if p.Peer == address {
					n = p.InFlight
					s.Holds(n <= threads, "%+v, workers %+v", p, last.Process.Workers)
				}
			}
		}
		// All 20 are answered in one moment: the log has less between an answer and the next request.
		seen, real = append(seen, n), append(real, max(before, after))
	}
	s.Row.Truth = fmt.Sprintf("in flight by the backend's log %s, said %s", each(real), each(seen))
	s.Holds(math.Abs(mean(seen)-mean(real)) <= max(0.02*mean(real), 0.1), "in flight: %v, said %v", real, seen)
	return last
}

// each says what ten readings were.
func each(list []int) string {
	if slices.Min(list) == slices.Max(list) {
		return fmt.Sprintf("%d in each of ten", list[0])
	}
	return fmt.Sprintf("%v (mean %.1f)", list, mean(list))
}

func mean(list []int) (m float64) {
	for _, n := range list {
		m += float64(n) / float64(len(list))
	}
	return m
}

// nobody: the threads wait for no peer, and none is named.
func (s *stage) nobody(path, truth, what string) {
	s.plain()
	s.come(clients, path)
	s.Until("the threads are busy", func() bool { l := s.ask(port); return l.Connections != nil && l.Connections.Waiting > 0 })
	s.Row.Truth = truth
	for range 5 {
		l := s.ask(port)
		s.silent(l, "127.0.0.1:")
		s.Holds(slices.ContainsFunc(l.Verdict.Findings, func(f api.Finding) bool {
			return strings.Contains(f.Evidence, what) || f.Code == "cpu_saturated"
		}), "%q is not said: %s", what, l.Verdict.Summary)
	}
}

// silent: a text is in no sentence of a verdict.
func (s *stage) silent(l *api.Listener, text string) {
	all := l.Verdict.Summary
	for _, f := range l.Verdict.Findings {
		all += f.Evidence + f.Advice
	}
	s.Holds(!strings.Contains(all, text), "%q is named: %s", text, all)
}

func advised(l *api.Listener) string {
	for _, f := range l.Verdict.Findings {
		if f.Code == l.Verdict.Cause {
			return f.Advice
		}
	}
	return ""
}

// wants: a finding says something; the table has the finding then.
func (s *stage) wants(l *api.Listener, code, text string) {
	for _, f := range l.Verdict.Findings {
		if f.Code == code {
			if said := " `" + code + "`: " + f.Evidence; !strings.Contains(s.Row.Said, said) {
				s.Row.Said += said
			}
			s.Holds(strings.Contains(f.Evidence, text), "%s does not say %q: %s", code, text, f.Evidence)
			return
		}
	}
	s.Holds(false, "there is no finding %s: %s", code, l.Verdict.Summary)
}
