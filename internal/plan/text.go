package plan

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Note is one thing that the numbers mean.
type Note struct {
	Code string // a cause where there is one of that name, else another word
	Text string
}

// Summary is the plan in one sentence.
func (p *Plan) Summary() string {
	o := p.Outcomes
	if o.Failed() == 0 {
		again := ""
		if p.Retried > 0 {
			again = phrase.Number(p.Retried) + " of them only by trying again, "
		}
		return phrase.Sprintf("All %s served, %sthe last after %s.", phrase.Plural(o.Served, "client is", "clients are"), again, inWords(p.Latency.Max))
	}
	parts := []string{"None of " + phrase.Plural(p.Input.Requests, "client", "clients") + " is served"}
	switch {
	case p.Input.Requests == 1:
		parts[0] = "The only client is not served"
	case o.Served > 0:
		parts[0] = phrase.Sprintf("%s of %s %s served", phrase.Number(o.Served), phrase.Plural(p.Input.Requests, "client", "clients"), phrase.Verb(o.Served, "is", "are"))
	}
	if n := o.ConnectTimeout; n > 0 {
		parts = append(parts, phrase.Plural(n, "gives", "give")+" up connecting"+p.connectLimit())
	}
	if n := o.ReadTimeout; n > 0 {
		parts = append(parts, phrase.Plural(n, "gives", "give")+" up waiting for the response"+afterTime(p.Input.ClientTimeout))
	}
	if n := o.Reset; n > 0 {
		parts = append(parts, phrase.Plural(n, "is", "are")+" reset")
	}
	return strings.Join(parts, ", ") + "."
}

// connectLimit is what ends a client's connecting.
func (p *Plan) connectLimit() string {
	limit := p.Input.ConnectTimeout
	if t := p.Input.ClientTimeout; !p.Input.TimeoutFromConnect && t > 0 && (limit == 0 || t < limit) {
		limit = t
	}
	return afterTime(limit)
}

func afterTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return " after " + inWords(d)
}

// Notes are what the numbers mean, the cause first.
func (p *Plan) Notes() []Note {
	var out []Note
	for _, n := range []Note{
		{string(p.workCause()), p.poolNote()},
		{string(model.CauseMaxConnections), p.frontNote()},
		{string(model.CauseSynBacklog), p.synQueueNote()},
		{string(model.CauseBacklogClamped), p.clampNote()},
		{"half_open", p.halfOpenNote()},
		{"wasted_work", p.wastedNote()},
		{"close_call", p.edgeNote()},
	} {
		if n.Text != "" {
			out = append(out, n)
		}
	}
	return out
}

// workCause names what keeps requests from being finished sooner.
func (p *Plan) workCause() model.Cause {
	if p.Input.backendLimits() {
		return model.CauseConnectionPool
	}
	return model.CauseMaxThreads
}

// workers is how many requests are worked on at once, and what limits them.
func (in *Input) workers() (n int, limit string) {
	switch {
	case in.Threads > 0 && (in.MaxConnections < 0 || in.Threads <= in.MaxConnections):
		return in.Threads, "threads"
	case in.Threads > 0:
		return in.MaxConnections, "connections (fewer than threads: raise max-connections first)"
	case in.MaxConnections > 0:
		return in.MaxConnections, "connections (threads do not limit)"
	}
	return in.Requests, "requests (nothing limits them)"
}

// perSecond is how many requests are finished (Little's law): by the workers, or
// by the backend where that is fewer.
func (p *Plan) perSecond() float64 {
	n, _ := p.Input.workers()
	byWorkers := float64(n) / p.Input.alone().Seconds()
	if byBackend, ok := p.Input.backendPerSecond(); ok {
		return min(byWorkers, byBackend)
	}
	return byWorkers
}

// backendPerSecond is how many requests the backend's connections can carry.
func (in *Input) backendPerSecond() (float64, bool) {
	if in.BackendConnections == 0 || in.BackendTime == 0 {
		return 0, false
	}
	return float64(in.BackendConnections) / in.BackendTime.Seconds(), true
}

// backendLimits: the pool is used up before the workers are.
func (in *Input) backendLimits() bool {
	byBackend, ok := in.backendPerSecond()
	n, _ := in.workers()
	return ok && byBackend < float64(n)/in.alone().Seconds()
}

// poolNote says what a longer queue cannot change.
func (p *Plan) poolNote() string {
	in := &p.Input
	if p.Smallest == nil {
		return "" // one request alone takes too long: no limit is the cause
	}
	workers, limit := in.workers()
	speed := phrase.Sprintf("%s %s finish %s requests/s", phrase.Number(workers), limit, rate(p.perSecond()))
	if in.backendLimits() {
		return p.backendNote()
	}
	more, other := "add threads", "accept-count or max-connections"
	if limit != "threads" {
		more, other = "raise max-connections", "accept-count"
	}
	switch {
	case in.Rate > p.perSecond() && p.Outcomes.Failed() > 0:
		return phrase.Sprintf("%s, and %s/s come: no queue is long enough for that, it only makes clients wait before they fail. Shorten the work or %s.", speed, rate(in.Rate), more)
	case p.Outcomes.ReadTimeout > 0 && p.Dropped.ACK == 0:
		return phrase.Sprintf("%s, %s at once need %s. More %s would not help: clients would wait elsewhere, not less.",
			speed, phrase.Number(in.Requests), inWords(p.wholeTime()), other)
	}
	return ""
}

// backendNote says that the pool limits, and what more threads would not change.
func (p *Plan) backendNote() string {
	in := &p.Input
	if p.Outcomes.Failed() == 0 {
		return ""
	}
	needed := int(math.Ceil(p.perSecond()*in.alone().Seconds() - 1e-9))
	return phrase.Sprintf("%s to the backend, %s each, carry %s requests/s: %s keep them all busy, more threads would only wait for one. Raise the pool to what the backend can handle, or make its answers faster.",
		phrase.Plural(in.BackendConnections, "connection", "connections"), inWords(in.BackendTime), rate(p.perSecond()), phrase.Plural(needed, "thread", "threads"))
}

// wholeTime is what the threads need for every request.
func (p *Plan) wholeTime() time.Duration {
	rounds := math.Ceil(float64(p.Input.Requests) / (p.perSecond() * p.Input.alone().Seconds()))
	return time.Duration(rounds) * p.Input.alone()
}

// frontNote explains why clients did not get in.
func (p *Plan) frontNote() string {
	drops := p.Dropped
	drops.SYN -= drops.SynQueue
	if p.Capacity == nil || drops.SYN+drops.ACK == 0 {
		return ""
	}
	return phrase.Sprintf("%s fit (max-connections %s + backlog %s + 1, the kernel's own). It drops the packets of those beyond: %s. A full backlog never refuses: Linux repeats the SYN after %s s.%s",
		phrase.Plural(*p.Capacity, "client", "clients"), phrase.Number(p.Input.MaxConnections), phrase.Number(p.Input.Backlog()),
		drops, p.Input.SynRetries.schedule(), p.noSlotInTime())
}

// noSlotInTime is the change that would not help.
func (p *Plan) noSlotInTime() string {
	in := &p.Input
	if in.Threads < 0 || in.ConnectTimeout == 0 || in.ConnectTimeout >= in.alone() || in.Rate > 0 {
		return ""
	}
	return phrase.Sprintf(" More threads would not let them in: the first place is free after %s.", inWords(in.alone()))
}

// synQueueNote names the drops that more room would not avoid.
func (p *Plan) synQueueNote() string {
	if p.Dropped.SynQueue == 0 {
		return ""
	}
	return phrase.Sprintf("%s dropped because the SYN queue was full. Switch net.ipv4.tcp_syncookies on.",
		phrase.Plural(p.Dropped.SynQueue, "SYN was", "SYNs were"))
}

func (d Drops) String() string {
	parts := []string{}
	if d.SYN > 0 {
		parts = append(parts, phrase.Plural(d.SYN, "SYN", "SYNs"))
	}
	if d.ACK > 0 {
		parts = append(parts, phrase.Plural(d.ACK, "final ACK or request", "final ACKs and requests"))
	}
	return strings.Join(parts, " and ")
}

func (r SynRetries) schedule() string {
	if r == SynRetriesExponential {
		return "1, 3, 7, 15"
	}
	return "1, 2, 3, 4, 5, 7, 11"
}

func (p *Plan) clampNote() string {
	in := &p.Input
	if in.Backlog() == in.AcceptCount {
		return ""
	}
	return phrase.Sprintf("accept-count %s is cut to net.core.somaxconn = %s. Raise the sysctl, then restart the listener.",
		phrase.Number(in.AcceptCount), phrase.Number(in.Somaxconn))
}

func (p *Plan) halfOpenNote() string {
	if p.Dropped.ACK == 0 {
		return ""
	}
	others := "the others believe they are connected, and wait"
	if p.Input.AbortOnOverflow {
		others = "tcp_abort_on_overflow resets the others"
	}
	return "SYNs that come together are all answered while there is room for one: " + others + "."
}

func (p *Plan) wastedNote() string {
	if p.Wasted == 0 {
		return ""
	}
	return phrase.Sprintf("%s worked on although the client had given up; the server is busy until %s.",
		phrase.Plural(p.Wasted, "request is", "requests are"), inWords(p.Duration))
}

func (p *Plan) edgeNote() string {
	var out []string
	if n := p.JustInTime; n > 0 && n*200 >= p.Input.Requests {
		out = append(out, phrase.Sprintf("%s in the last 1 %% of the client's timeout, and in reality may come too late.", phrase.Plural(n, "response arrives", "responses arrive")))
	}
	if n := p.JustLate; n > 0 && n*200 >= p.Input.Requests {
		out = append(out, phrase.Sprintf("%s the client's timeout by less than 1 %%, and in reality may come in time.", phrase.Plural(n, "response misses", "responses miss")))
	}
	return strings.Join(out, " ")
}

// SmallestNotes say what the smallest limits require in addition.
func (p *Plan) SmallestNotes() []string {
	var out []string
	l := p.Smallest
	if l == nil {
		return []string{phrase.Capital(p.Why) + "."}
	}
	workers, kind := l.Threads, "threads"
	if workers == 0 {
		workers, kind = l.MaxConnections, "connections"
		out = append(out, "Threads do not limit (virtual threads): max-connections says how many requests are worked on at once.")
	}
	if pace := int(math.Ceil(p.Input.Rate * p.Input.alone().Seconds())); workers < pace {
		out = append(out, phrase.Sprintf("Enough for this long; to keep pace with %s/s for ever takes %s %s.", rate(p.Input.Rate), phrase.Number(pace), kind))
	}
	if l.AcceptCount > p.Input.Somaxconn {
		out = append(out, phrase.Sprintf("accept-count %s needs net.core.somaxconn of as much (now %s), set before the server starts.",
			phrase.Number(l.AcceptCount), phrase.Number(p.Input.Somaxconn)))
	}
	if given := p.Input.AcceptCount; l.AcceptCount > given && p.Input.Syncookies {
		out = append(out, phrase.Sprintf("Or leave accept-count at %s and set max-connections to %s; mind the open files.",
			phrase.Number(given), phrase.Number(l.MaxConnections+l.AcceptCount-given)))
	}
	return out
}

// rate prints requests per second.
func rate(f float64) string {
	if f >= 1000 {
		return phrase.Number(int(math.Round(f)))
	}
	return phrase.Decimal(f)
}

// inWords is a time to three digits: "900 ms", "5.12 s", "75 s".
func inWords(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'g', 3, 64) + " ms"
	}
	return strconv.FormatFloat(math.Round(d.Seconds()*100)/100, 'f', -1, 64) + " s"
}
