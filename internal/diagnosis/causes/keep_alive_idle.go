package causes

import (
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// keepAliveIdle: the connections are all taken, most of them by clients that want nothing.
func keepAliveIdle() Cause {
	return Cause{
		Name: model.CauseKeepAliveIdle,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty {
				return max(When(m.AtLatch() && m.MostlyIdle(), Surely), When(m.AtLimit() && m.MostlyIdle(), Possibly))
			},
			refuted: []refutation[*evidence.Moment]{{inAccept, (*evidence.Moment).Accepting}, {maybeAtSafepoint, (*evidence.Moment).MayBeAtSafepoint}},
		},
		rests: restsOnAcceptor,
		around: rule[reading.Pair]{holds: func(p reading.Pair) Certainty {
			return When(p.Either(p.AtConnectionLimit) && p.MostlyIdle(), Surely)
		}},
		Now:  rule[*symptoms.Symptoms]{holds: func(s *symptoms.Symptoms) Certainty { return When(s.ConnectionsFull && s.MostlyIdle(), Surely) }},
		Near: func(s *symptoms.Symptoms) bool { return s.ConnectionsHigh() && s.MostlyIdleNow() },
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if !s.ConnectionsFull {
				return " because the limit of connections was reached, most of them idle"
			}
			return " because " + words.Connections(s) + ", " + words.Idle(s.Now)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.ConnectionsEvidence(s, model.CauseKeepAliveIdle, v)
		},
		Advice: adviseKeepAlive,
		Steps:  keepAliveSteps,
		Book: Runbook{
			Title:     "idle connections take all places",
			Seen:      "Tomcat holds maxConnections connections, the accept queue is not empty, and most of the accepted connections are idle.",
			Clients:   "Waits in the accept queue; when it is full, connect timeouts.",
			Change:    "Lower `server.tomcat.keep-alive-timeout`, or raise max-connections: idle connections cost little. If most of the idle clients have never sent a byte (`silent`), `connectionTimeout` ends them and keepAliveTimeout does not. Behind a reverse proxy its own pool of connections is the number to size.",
			Vain:      "More threads: those there are have nothing to do.",
			Holds:     "max_connections holds, and most of the accepted connections are idle, and most of these are not between two pieces of a response",
			Otherwise: "max_connections; never said of connections that cannot be classified, or that may be in service",
		},
	}
}

func keepAliveSteps(s *symptoms.Symptoms, v model.Verdict) (do []model.Step, not string) {
	if reading.ConnectionLimit(s.Now) != reading.LimitKnown {
		return unknownSteps(s), ""
	}
	to, _ := advice.ConnectionsWanted(s)
	raise := advice.RaiseConnections(s, "Let more clients in: an idle connection costs a descriptor and a few KiB, no thread", to)
	do = append(do, endIdleSooner(s)...)
	not = "More threads: those there are have nothing to do."
	if slices.Contains(v.Chain, model.CauseMaxThreads) {
		not = "A larger acceptCount: more clients would wait behind idle ones."
	}
	return append(do, raise...), not
}

// endIdleSooner is there where a timeout may end idle connections sooner than today.
func endIdleSooner(s *symptoms.Symptoms) []model.Step {
	c := s.Now.Connector
	in, set, text := c.KeepAlive(), advice.KeepAliveSetting(), "End idle connections sooner; clients connect more often then"
	if reading.MostlySilent(s.Now) {
		in, set, text = c.ConnectionTimeout, advice.ConnectionTimeoutSetting(), "End connections that send nothing sooner"
	}
	switch {
	case reading.MostlyRecent(s.Now), in != nil && in.Value > 0 && in.Value <= advice.ShortTimeout:
		return nil // clients that ask again and again are not ended by it
	case !reading.MostlySilent(s.Now) && (in == nil || in.Uncertain):
		return nil // whether that timeout is in force is not known
	}
	step := set.ChangeTime(s, in, text, advice.ShortTimeout)
	if !reading.MostlySilent(s.Now) && c.KeepAliveTimeout == nil { // that of connectionTimeout counts, which is another setting
		step.From, step.File = phrase.Seconds(in.Value)+" (unset: connectionTimeout's)", ""
	}
	return []model.Step{step}
}

func adviseKeepAlive(s *symptoms.Symptoms, v model.Verdict) string {
	if reading.ConnectionLimit(s.Now) != reading.LimitKnown {
		return advice.Unknown(s)
	}
	to, _ := advice.ConnectionsWanted(s)
	raise := "raise " + advice.MaxConnectionsSetting().FromTo(s.Now, s.Now.Connector.MaxConnections.Value, to) + ": an idle connection costs a descriptor and a few KiB, no thread."
	after := "More threads would not help, those there are have nothing to do; "
	if slices.Contains(v.Chain, model.CauseMaxThreads) {
		after = "All threads are busy, too: those let in wait inside, unless " + advice.MaxThreadsSetting().Name(s.Now) + " is raised as well, which alone would let nobody in; "
	}
	after += "a larger acceptCount would only let more clients wait behind idle ones."
	lower, short := shorterKeepAlive(s)
	effect := "A shorter timeout makes clients connect more often; it does not end WebSockets, which look the same from outside until it is over."
	if reading.MostlySilent(s.Now) {
		lower, short = shorterSilence(s)
		effect = "Clients that take longer to send their first request are then closed; keepAliveTimeout does not concern them."
	}
	if reading.MostlyRecent(s.Now) {
		return phrase.Sentences(phrase.Capital(raise), "They are idle for moments only: clients that ask again and again, or WebSockets that talk, which a shorter keepAliveTimeout does not end.", advice.BeforeRaising(s, to), after)
	}
	if short {
		return phrase.Sentences(phrase.Capital(raise), lower+".", advice.BeforeRaising(s, to), after)
	}
	if t := s.Now.Connector.KeepAlive(); !reading.MostlySilent(s.Now) && (t == nil || t.Uncertain) {
		return phrase.Sentences(phrase.Capital(raise), lower+" only if these connections wait for another request: the timeout that is in force is not certain, and it does not end WebSockets, which look the same from outside.", advice.BeforeRaising(s, to), after)
	}
	return phrase.Sentences(lower+", or "+raise, advice.BeforeRaising(s, to), effect+" "+after)
}

// shorterSilence is the same for connections on which no request ever came:
// connectionTimeout ends these, which has a value in every Tomcat.
func shorterSilence(s *symptoms.Symptoms) (change string, short bool) {
	name, to := advice.ConnectionTimeoutSetting().Name(s.Now), phrase.Seconds(advice.ShortTimeout)
	inForce := s.Now.Connector.ConnectionTimeout
	switch {
	case inForce == nil:
		return "Set " + name + " to " + to + " (unset it is 60 s)", false
	case inForce.Value <= 0:
		return "Set " + name + " to " + to + " (now a client that sends nothing is never closed)", false
	case inForce.Value <= advice.ShortTimeout:
		return fmt.Sprintf("%s ends clients that send nothing after %s already", phrase.Capital(name), phrase.Seconds(inForce.Value)), true
	}
	return fmt.Sprintf("Lower %s from %s to %s", name, phrase.Seconds(inForce.Value), to), false
}

// shorterKeepAlive is the change that frees idle connections sooner; short is
// true where they are freed that soon already. Below 0 they never are; unset,
// keepAliveTimeout is connectionTimeout.
func shorterKeepAlive(s *symptoms.Symptoms) (change string, short bool) {
	name, to := advice.KeepAliveSetting().Name(s.Now), phrase.Seconds(advice.ShortTimeout)
	inForce := s.Now.Connector.KeepAlive()
	switch {
	case inForce == nil:
		return "Set " + name + " to " + to + " (unset it is connectionTimeout, 20 to 60 s)", false
	case inForce.Value <= 0:
		return "Set " + name + " to " + to + " (now idle connections are never closed)", false
	case inForce.Value <= advice.ShortTimeout:
		return fmt.Sprintf("%s frees idle connections after %s already", phrase.Capital(name), phrase.Seconds(inForce.Value)), true
	case s.Now.Connector.KeepAliveTimeout == nil:
		return fmt.Sprintf("Set %s to %s (unset it is connectionTimeout, %s)", name, to, phrase.Seconds(inForce.Value)), false
	}
	return fmt.Sprintf("Lower %s from %s to %s", name, phrase.Seconds(inForce.Value), to), false
}
