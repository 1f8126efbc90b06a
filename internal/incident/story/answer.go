package story

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Answer is what a reader has to know first: what happened to clients over the whole
// length, and why, what to do and what not by the verdict of the worst moment.
func (s *Story) Answer() model.Answer {
	v := &s.Worst.Listener.Verdict
	out := v.Answer
	out.What = s.what()
	if out.Why == "" { // of a recording without an answer
		out.Why = v.Summary
		for _, f := range v.Findings {
			if f.Advice != "" && f.Severity != model.SeverityInfo && len(out.Do) < model.MaxSteps {
				out.Do = append(out.Do, model.Step{Text: f.Advice})
			}
		}
	}
	return out
}

// what is the number of clients, with the place and the time.
func (s *Story) what() string {
	at := fmt.Sprintf(" %s%s: %s, for %s", model.Printable(s.Header.Address), on(s.Header.Host), recording.Clock(s.Header.Began), phrase.Seconds(s.Lasted()))
	end := "."
	if s.Continues() {
		end = ", and it continues."
	}
	switch sum, packets, resets := &s.Summary, s.Counted.Packets(), s.Counted.QueueResets; {
	case sum.TurnedAway != nil && *sum.TurnedAway > 0 && sum.Undecided() > 0:
		return "At least " + phrase.Count(*sum.TurnedAway, "client") + " got no answer from" + at + end + " " + phrase.Number(sum.Undecided()) + " more have had none so far."
	case sum.TurnedAway != nil && *sum.TurnedAway > 0:
		return phrase.Count(*sum.TurnedAway, "client") + " got no answer from" + at + end
	case packets > 0:
		return phrase.Count(packets, "packet") + " of clients " + phrase.Verb(packets, "was", "were") + " dropped at" + at + end
	case resets > 0:
		return phrase.Count(resets, "queued client") + " " + phrase.Verb(resets, "was", "were") + " reset at" + at + end
	case sum.Status == model.StatusDown:
		return "Clients were refused, nothing listened on" + at + end
	}
	return "Clients waited, and nothing was lost, at" + at + end
}
