package draws

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// counts are the agent's, since its start. unclear were let in, and whether they were answered is not
// known; it says so.
type counts struct {
	gaveUp, refused, inside, stalled, undecided, halfOpen, unclear float64

	answered, checks, letIn float64
	open                    float64 // began, and it is not known yet how they end: of some it takes minutes
	// inHand were let in, and have had no answer nor left, for all that the kernel sees: who has left while the
	// server's buffer is full of an upload that nobody reads cannot say so.
	inHand float64
}

func (w *world) count() (n counts) {
	m, err := w.agent.Metrics(w.Ctx)
	w.Must(err)
	of := func(outcome string) float64 {
		return m.Sum("tcpdiag_listener_clients_total", fmt.Sprintf("outcome=%q", outcome))
	}
	n.gaveUp, n.stalled, n.undecided, n.halfOpen = of("gave_up"), of("stalled"), of("undecided"), of("half_open")
	// Of a listener that was opened again the series is absent until it is known what it speaks.
	w.unanswered = max(w.unanswered, m.Sum("tcpdiag_listener_clients_unanswered_total"))
	n.inside = n.stalled + of("reset") + w.unanswered
	n.refused = m.Sum("tcpdiag_port_refused_clients_total")
	n.total(w)
	return n
}

// total reads what the listener's totals have beside the metrics; as it was where there are none now.
func (n *counts) total(w *world) {
	n.unclear, n.answered, n.checks, n.letIn, n.inHand = w.said.unclear, w.said.answered, w.said.checks, w.said.letIn, 0
	text, err := w.agent.Get(w.Ctx, "/api/v1/snapshot")
	if err != nil {
		return // it has no snapshot yet
	}
	var d api.Snapshot
	w.Must(json.Unmarshal(text, &d))
	for _, l := range d.Listeners {
		if int(l.Port) != rig.Port || l.Totals == nil || l.Totals.Clients == nil || l.Totals.Clients.Unclear == nil {
			continue
		}
		c := l.Totals.Clients
		n.unclear, n.answered, n.checks, n.letIn = float64(*c.Unclear), float64(*c.Answered), float64(*c.Checks), float64(c.LetIn)
		decided := c.Connected + c.Delayed + c.GaveUp + c.Stalled + c.Reset + c.HalfOpen + c.Undecided
		n.open = float64(c.Begun - min(c.Begun, decided))
		ended := *c.Answered + *c.Unanswered + *c.Checks + *c.Unclear + c.Reset
		n.inHand = float64(c.LetIn - min(c.LetIn, ended))
	}
}

// compare waits until what the agent has counted of the draw is what the clients say, or
// it has had its time.
func (w *world) compare(a *account) (text, bad, vague string) {
	n := a.clients()
	if !w.draw.countable() {
		w.settle()
	}
	for deadline := time.Now().Add(30 * time.Second); ; w.Wait(500 * time.Millisecond) {
		now, late := w.count(), time.Now().After(deadline)
		if !late {
			now.open, now.inHand = 0, 0 // it is awaited
		}
		if text, bad, vague = w.draw.differ(n, now, w.said); bad == "" || late {
			return text, bad, vague
		}
	}
}

// settle waits until nothing more is counted of those that nobody else counts: they would
// be taken for the next draw's.
func (w *world) settle() {
	last, since := w.count(), time.Now()
	for deadline := time.Now().Add(30 * time.Second); time.Since(since) < 6*time.Second && time.Now().Before(deadline); w.Wait(500 * time.Millisecond) {
		if now := w.count(); now != last {
			last, since = now, time.Now()
		}
	}
}

// differ holds the clients' account against what was counted meanwhile: gave up and refused
// exactly, who was let in and not answered within one client or 0.5 %, undecided one of a hundred
// at most. Who left at the moment when it was connected was answered as little as one of a check;
// who left at that of its answer may be counted as either. Of more than one of a hundred it is not known
// whether they were answered: vague says so.
func (d draw) differ(n [endings]int, now, before counts) (text, bad, vague string) {
	lost, rejected, inside := int(now.gaveUp-before.gaveUp), int(now.refused-before.refused), int(now.inside-before.inside)
	text = fmt.Sprintf("counted: %d gave up, %d refused, %d unanswered, reset or stalled; undecided %d", lost, rejected, inside, int(now.undecided-before.undecided))
	if !d.countable() {
		return text, "", ""
	}
	var wrongs []string
	hold := func(name string, want, got, within, unclear int) {
		if got < want-within-unclear || got > want+within+n[hasty]+n[tooLate] {
			wrongs = append(wrongs, fmt.Sprintf("%d %s, counted %d", want, name, got))
		}
	}
	if lost != n[gaveUp] {
		wrongs = append(wrongs, fmt.Sprintf("%d gave up, counted %d", n[gaveUp], lost))
	}
	hold("were refused", n[refused], rejected, 0, 0)
	all := 0
	for _, count := range n {
		all += count
	}
	hold("undecided", 0, int(now.undecided-before.undecided), max(1, all/100), 0)
	if d.answersCountable() {
		want := n[unanswered] + n[reset]
		unclear := max(0, int(now.unclear-before.unclear)) + int(now.open)
		if d.handler == "upload" {
			unclear += int(now.inHand)
		}
		if early := int(before.open + before.inHand); inside > want { // those of the draw before, of whom it was not known
			inside = max(want, inside-early)
		}
		if inside > want { // a check that has left before the server's kernel had a socket for it is stalled
			inside = max(want, inside-max(0, n[checked]-int(now.checks-before.checks)))
		}
		hold("were let in and not answered", want, inside, max(1, want/200), unclear)
		text += fmt.Sprintf(", let in %d, answered %d, checks %d, not known (yet) whether answered %d",
			int(now.letIn-before.letIn), int(now.answered-before.answered), int(now.checks-before.checks), unclear)
		if unclear > max(1, all/100) {
			vague = fmt.Sprintf("of %d clients it is not known whether they were answered", unclear)
		}
	}
	return text, strings.Join(wrongs, ", "), vague
}
