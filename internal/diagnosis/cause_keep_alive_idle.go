package diagnosis

import (
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// keepAliveIdle: the connections are all taken, most of them by clients that want nothing.
func keepAliveIdle() cause {
	return cause{
		name: model.CauseKeepAliveIdle,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) certainty {
				return max(when(m.AtLatch() && m.MostlyIdle(), surely), when(m.AtLimit() && m.MostlyIdle(), possibly))
			},
			refuted: []refutation[*evidence.Moment]{{inAccept, (*evidence.Moment).Accepting}},
		},
		rests: restsOnAcceptor,
		around: rule[reading.Pair]{holds: func(p reading.Pair) certainty {
			return when(p.Either(p.AtConnectionLimit) && p.MostlyIdle(), surely)
		}},
		now:  rule[*judge]{holds: func(j *judge) certainty { return when(j.connectionsFull && j.MostlyIdle(), surely) }},
		near: func(j *judge) bool { return j.connectionsHigh() && j.mostlyIdleNow() },
		because: func(j *judge, _ model.Verdict) string {
			if !j.connectionsFull {
				return " because maxConnections was reached, most of it by idle connections"
			}
			return " because " + j.connectionsPhrase() + ", " + idlePhrase(j.Now)
		},
		evidence: func(j *judge, v model.Verdict) string { return j.connectionsEvidence(model.CauseKeepAliveIdle, v) },
		advice:   (*judge).adviseKeepAlive,
		steps:    (*judge).keepAliveSteps,
		book: Runbook{
			Title:     "idle connections take all places",
			Seen:      "Tomcat holds maxConnections connections, the accept queue is not empty, and most of the accepted connections are idle.",
			Clients:   "Waits in the accept queue; when it is full, connect timeouts.",
			Change:    "Lower `server.tomcat.keep-alive-timeout`, or raise max-connections: idle connections cost little. If most of the idle clients have never sent a byte (`silent`), `connectionTimeout` ends them and keepAliveTimeout does not. Behind a reverse proxy its own pool of connections is the number to size.",
			Vain:      "More threads: those there are have nothing to do.",
			Holds:     "max_connections holds, and most of the accepted connections are idle, most of these for more than two seconds",
			Otherwise: "max_connections; never said of connections that cannot be classified, or that were used a moment ago",
		},
	}
}

func (j *judge) keepAliveSteps(v model.Verdict) (do []model.Step, not string) {
	if reading.ConnectionLimit(j.Now) != reading.LimitKnown {
		return j.unknownSteps(), ""
	}
	to, _ := j.connectionsWanted()
	raise := j.raiseConnections("Let more clients in: an idle connection costs a descriptor and a few KiB, no thread", to)
	do = append(do, j.endIdleSooner()...)
	not = "More threads: those there are have nothing to do."
	if slices.Contains(v.Chain, model.CauseMaxThreads) {
		not = "A larger acceptCount: more clients would wait behind idle ones."
	}
	return append(do, raise...), not
}

// endIdleSooner is there where a timeout may end idle connections sooner than today.
func (j *judge) endIdleSooner() []model.Step {
	c := j.Now.Connector
	in, s, text := c.KeepAlive(), keepAliveSetting(), "End idle connections sooner; clients connect more often then"
	if reading.MostlySilent(j.Now) {
		in, s, text = c.ConnectionTimeout, connectionTimeoutSetting(), "End connections that send nothing sooner"
	}
	switch {
	case in != nil && in.Value > 0 && in.Value <= shortTimeout:
		return nil
	case !reading.MostlySilent(j.Now) && (in == nil || in.Uncertain):
		return nil // whether that timeout is in force is not known
	}
	step := s.changeTime(j, in, text, shortTimeout)
	if !reading.MostlySilent(j.Now) && c.KeepAliveTimeout == nil { // that of connectionTimeout counts, which is another setting
		step.From, step.File = phrase.Seconds(in.Value)+" (unset: connectionTimeout's)", ""
	}
	return []model.Step{step}
}

func (j *judge) adviseKeepAlive(v model.Verdict) string {
	if reading.ConnectionLimit(j.Now) != reading.LimitKnown {
		return j.adviseUnknown()
	}
	to, _ := j.connectionsWanted()
	raise := "raise " + maxConnectionsSetting().fromTo(j.Now, j.Now.Connector.MaxConnections.Value, to) + ": an idle connection costs a descriptor and a few KiB, no thread."
	after := "More threads would not help, those there are have nothing to do; "
	if slices.Contains(v.Chain, model.CauseMaxThreads) {
		after = "All threads are busy, too: those let in wait inside, unless " + maxThreadsSetting().name(j.Now) + " is raised as well, which alone would let nobody in; "
	}
	after += "a larger acceptCount would only let more clients wait behind idle ones."
	lower, short := j.shorterKeepAlive()
	effect := "A shorter timeout makes clients connect more often; it does not end WebSockets, which look the same from outside until it is over."
	if reading.MostlySilent(j.Now) {
		lower, short = j.shorterSilence()
		effect = "Clients that take longer to send their first request are then closed; keepAliveTimeout does not concern them."
	}
	if short {
		return phrase.Sentences(phrase.Capital(raise), lower+".", j.beforeRaising(to), after)
	}
	if t := j.Now.Connector.KeepAlive(); !reading.MostlySilent(j.Now) && (t == nil || t.Uncertain) {
		return phrase.Sentences(phrase.Capital(raise), lower+" only if these connections wait for another request: the timeout that is in force is not certain, and it does not end WebSockets, which look the same from outside.", j.beforeRaising(to), after)
	}
	return phrase.Sentences(lower+", or "+raise, j.beforeRaising(to), effect+" "+after)
}

// shorterSilence is the same for connections on which no request ever came:
// connectionTimeout ends these, which has a value in every Tomcat.
func (j *judge) shorterSilence() (change string, short bool) {
	name, to := connectionTimeoutSetting().name(j.Now), phrase.Seconds(shortTimeout)
	inForce := j.Now.Connector.ConnectionTimeout
	switch {
	case inForce == nil:
		return "Set " + name + " to " + to + " (unset it is 60 s)", false
	case inForce.Value <= 0:
		return "Set " + name + " to " + to + " (now a client that sends nothing is never closed)", false
	case inForce.Value <= shortTimeout:
		return fmt.Sprintf("%s ends clients that send nothing after %s already", phrase.Capital(name), phrase.Seconds(inForce.Value)), true
	}
	return fmt.Sprintf("Lower %s from %s to %s", name, phrase.Seconds(inForce.Value), to), false
}

// shorterKeepAlive is the change that frees idle connections sooner; short is
// true where they are freed that soon already. Below 0 they never are; unset,
// keepAliveTimeout is connectionTimeout.
func (j *judge) shorterKeepAlive() (change string, short bool) {
	name, to := keepAliveSetting().name(j.Now), phrase.Seconds(shortTimeout)
	inForce := j.Now.Connector.KeepAlive()
	switch {
	case inForce == nil:
		return "Set " + name + " to " + to + " (unset it is connectionTimeout, 20 to 60 s)", false
	case inForce.Value <= 0:
		return "Set " + name + " to " + to + " (now idle connections are never closed)", false
	case inForce.Value <= shortTimeout:
		return fmt.Sprintf("%s frees idle connections after %s already", phrase.Capital(name), phrase.Seconds(inForce.Value)), true
	case j.Now.Connector.KeepAliveTimeout == nil:
		return fmt.Sprintf("Set %s to %s (unset it is connectionTimeout, %s)", name, to, phrase.Seconds(inForce.Value)), false
	}
	return fmt.Sprintf("Lower %s from %s to %s", name, phrase.Seconds(inForce.Value), to), false
}
