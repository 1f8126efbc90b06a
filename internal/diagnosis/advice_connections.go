package diagnosis

import (
	"fmt"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// shortTimeout is what a server that runs out of connections may grant a client
// that sends nothing.
const shortTimeout = 5 * time.Second

func (j *judge) adviseConnections(v model.Verdict) string {
	if connectionLimit(j.Now) != limitKnown {
		return j.adviseUnknown()
	}
	to, covers := j.connectionsWanted()
	change := maxConnectionsSetting().fromTo(j.Now, j.Now.Connector.MaxConnections.Value, to)
	raise := "Raise " + change + ": " + covers + "."
	switch threads := slices.Contains(v.Chain, model.CauseMaxThreads); {
	case j.slotsWithoutThread() && mostlyOutlived(j.Now):
		n, _ := held(j.Now)
		raise = phrase.Sprintf("%d of the %d connections were answered and have been quiet for longer than keepAliveTimeout allows: WebSockets, or others that the application keeps open, which no timeout of the connector ends. ", j.Now.Connections.Outlived, n) +
			"Limit them in the application (an idle timeout of the WebSocket session), or raise " + change + "."
	case j.slotsWithoutThread():
		n, _ := held(j.Now)
		raise = phrase.Sprintf("At least %d of the %d connections hold a slot and no thread. If their clients never finish a request, ", phase(j.Now, model.Unclassified), n) +
			j.shorterRequests() + "; if they are WebSockets or answered asynchronously, raise " + change + "."
	case threads && j.threadsFull && j.overflowed() > 0:
		raise = "Threads first (see max_threads): they decide how fast clients are served. Raising " + change + " lets those in that are now turned away, to wait inside: " + covers + "."
	case threads && j.threadsFull:
		raise = "Threads first (see max_threads). Raising " + change + " only moves the wait from the accept queue into " + serverName(j.Now) + "."
	case threads:
		raise = "Raise " + change + " (" + covers + ") together with " + maxThreadsSetting().name(j.Now) + ": every thread is busy as well, those let in would only wait inside."
	}
	return phrase.Sentences(raise, j.beforeRaising(to), j.acceptCountInVain())
}

// shorterRequests: connectionTimeout is how long a client may take to send one.
func (j *judge) shorterRequests() string {
	name := connectionTimeoutSetting().name(j.Now)
	if t := j.Now.Connector.ConnectionTimeout; t != nil && t.Value > 0 && t.Value <= shortTimeout {
		return fmt.Sprintf("%s ends them after %s already", name, phrase.Seconds(t.Value))
	}
	return "lower " + name + " to " + phrase.Seconds(shortTimeout)
}

// connectionsWanted is a maxConnections above the one in force, and what it is
// enough for: the clients for which there was no room, where they were counted.
func (j *judge) connectionsWanted() (to int, covers string) {
	clients, known := j.withoutRoom()
	if !known {
		return j.connectionsForPackets()
	}
	most := j.Now.Connector.MaxConnections.Value
	to = max(spare(j.here()+int(clients)), most+1)
	who := j.orMore(clients)
	if step := atMost(most); to > step {
		return step, "a first step towards room for the " + who + " for which there was none"
	}
	return to, "room for those inside, those in the accept queue, and the " + who + " for which there was none"
}

// here are the clients inside and those in the accept queue.
func (j *judge) here() int {
	n, _ := held(j.Now)
	return max(n, j.Now.Connector.MaxConnections.Value) + queued(j.Now)
}

// connectionsForPackets: a dropped packet stands for one client at most, and many
// of them are retransmissions: so the packets of the worst second, in which no
// client repeats one, where they were counted. A step is bounded in any case.
func (j *judge) connectionsForPackets() (to int, covers string) {
	most := j.Now.Connector.MaxConnections.Value
	here := j.here()
	dropped, whose := j.overflowed(), "for one client per dropped packet, the most there can have been"
	if b := j.losses().Burst; b > 0 && b < dropped {
		dropped, whose = b, fmt.Sprintf("for the clients of the worst second, which dropped %s", phrase.Count(b, "packet"))
	}
	to, covers = max(spare(here+int(dropped)), most+1), "room for those inside and those in the accept queue"
	switch bound := min(max(j.t.ConnectionsMost, roundUp(2*here)), atMost(most)); {
	case dropped == 0 && to > atMost(most):
		to, covers = atMost(most), "a first step towards room for those in the accept queue"
	case dropped == 0:
	case to > bound:
		to = bound
		covers += fmt.Sprintf(", as a first step: how many clients the %s are is not known, the same ones try again and again", phrase.Count(j.overflowed(), "dropped packet"))
	default:
		covers += ", and " + whose
	}
	return to, covers
}

// atMost is how far one step raises a limit: what is right for ten times as many
// clients is not known from the clients of today.
func atMost(limit int) int { return max(10*limit, 10) }

func (j *judge) adviseKeepAlive(v model.Verdict) string {
	if connectionLimit(j.Now) != limitKnown {
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
	if mostlySilent(j.Now) {
		lower, short = j.shorterSilence()
		effect = "Clients that take longer to send their first request are then closed; keepAliveTimeout does not concern them."
	}
	if mostlyRecent(j.Now) {
		return phrase.Sentences(phrase.Capital(raise), "They are idle for moments only: clients that ask again and again, or WebSockets that talk, which a shorter keepAliveTimeout does not end.", j.beforeRaising(to), after)
	}
	if short {
		return phrase.Sentences(phrase.Capital(raise), lower+".", j.beforeRaising(to), after)
	}
	if t := j.Now.Connector.KeepAlive(); !mostlySilent(j.Now) && (t == nil || t.Uncertain) {
		return phrase.Sentences(phrase.Capital(raise), lower+" only if these connections wait for another request: the timeout that is in force is not certain, and it does not end WebSockets, which look the same from outside.", j.beforeRaising(to), after)
	}
	return phrase.Sentences(lower+", or "+raise, j.beforeRaising(to), effect+" "+after)
}

// beforeRaising is what to know of a new limit: the descriptors that it takes, and
// that the one in force may be above it.
func (j *judge) beforeRaising(to int) string {
	limit, least := j.Now.Connector.MaxConnections, ""
	if limit.Kind == model.SourceInferred && limit.Uncertain {
		least = phrase.Sprintf("%d is the least that the limit in force can be, as connections that clients reset may hold more slots: look it up first (maxConnections of the connector, by JMX).", limit.Value)
	}
	return phrase.Sentences(least, filesFor(j.Now, to))
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
