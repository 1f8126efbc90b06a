package story

import (
	"fmt"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
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
	} else if until := s.cutOff(); until != "" {
		end = ", until " + until + "."
	}
	switch sum, packets, resets := &s.Summary, s.Counted.Packets(), s.Counted.QueueResets; {
	case sum.TurnedAway != nil && *sum.TurnedAway > 0 && sum.Undecided() > 0:
		noun, from := s.callers()
		return "At least " + phrase.Count(*sum.TurnedAway, noun) + from + " got no answer from" + at + end + " " + phrase.Number(sum.Undecided()) + " more " + s.undecided() + "."
	case sum.TurnedAway != nil && *sum.TurnedAway > 0:
		who, how := s.turnedAway()
		return who + " got no answer from" + at + end + how
	case packets > 0:
		return phrase.Count(packets, "packet") + " of clients " + phrase.Verb(packets, "was", "were") + " dropped at" + at + end
	case resets > 0:
		return phrase.Count(resets, "queued client") + " " + phrase.Verb(resets, "was", "were") + " reset at" + at + end
	case sum.Status == model.StatusDown:
		return "Clients were refused, nothing listened on" + at + end
	}
	return "Clients waited, and nothing was lost, at" + at + end
}

// turnedAway says of how many clients how many were turned away, "40 of 60 clients", and how: " 15 never got in, 25
// gave up waiting inside." Only the number is known where the counts of the last frame are not those of the summary.
func (s *Story) turnedAway() (who, how string) {
	n, c := *s.Summary.TurnedAway, s.Counted.Clients
	noun, from := s.callers()
	who = phrase.Count(n, noun) + from
	if c == nil || c.TurnedAway() != n {
		return who, ""
	}
	if ended := diagnosis.Ended(c); ended > n {
		who = phrase.Number(n) + " of " + phrase.Count(ended, noun) + from
	}
	return who, " " + phrase.Capital(strings.Join(diagnosis.Ways(c), ", ")) + "."
}

// undecided says until when some clients had no answer.
func (s *Story) undecided() string {
	switch {
	case s.Going:
		return "have had none so far"
	case s.Summary.Ended.IsZero(): // a file: it may be added to
		return "had none at " + recording.Clock(s.Summary.LastSeen)
	}
	return "had none " + s.Summary.Until()
}

// cutOff says what ended the recording in the middle of the trouble, "" where the trouble was over.
func (s *Story) cutOff() string {
	if s.Summary.LastSeen.Sub(s.Summary.LastTrouble) >= model.Quiet {
		return ""
	}
	switch s.Summary.Reason {
	case recording.EndStopped:
		return "the agent was stopped"
	case recording.EndDisplaced:
		return "the recording was ended for another owner's"
	case recording.EndInterrupted:
		return "the agent was killed"
	}
	return ""
}
