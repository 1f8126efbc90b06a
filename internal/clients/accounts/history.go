package accounts

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// State is what was seen of the clients up to a snapshot, for the next one. It is not changed.
type State struct{ histories map[key]*history }

// key is a listener's address, or a port.
type key struct {
	netns uint64
	addr  netip.AddrPort
}

// copy is one that may be changed, of what there are accounts of.
func (s *State) copy(c *Clients) *State {
	out := &State{make(map[key]*history)}
	if s == nil {
		return out
	}
	for k, h := range s.histories {
		if n := c.followed(k.netns); n != nil && n.Accounts[k.addr] != nil {
			out.histories[k] = new(*h)
		}
	}
	return out
}

// history is that of an account.
func (s *State) history(netns uint64, addr netip.AddrPort) *history {
	k := key{netns, addr}
	h := s.histories[k]
	if h == nil {
		h = &history{}
		s.histories[k] = h
	}
	return h
}

// Judged takes the cause that a listener's verdict names while its clients are turned away. It is
// called for the state that Add has made, before anybody else has it.
func (s *State) Judged(l *model.Listener, now time.Time) {
	if s == nil {
		return
	}
	addr := l.ID.Address
	if !l.Listening() {
		addr = Port(l.Port)
	}
	if h := s.histories[key{l.ID.NetNS, addr}]; h != nil {
		l.Recent = h.named(l.Recent, now, l.Verdict.Cause)
	}
}

// history is what was seen of one account.
type history struct {
	speaks   *model.Connector // what is known of its protocol, nil for nothing
	greeting greeting
	beside   bool      // something else was seen to listen on its port at the same time
	unnamed  time.Time // since when it is not known what listens; zero where it is, and where nothing does
	answered bool      // one of its clients has had a byte, and not only a few of many
	recents  []trouble
	away     away
	quiet    quiet
	unseen   time.Time // since when SYNs were dropped of which no handshake was seen; zero for never
}

// trouble is when a listener began to lose something, and what its clients had come to.
type trouble struct {
	began  time.Time
	before model.ClientTotals
}

// away are the clients that were turned away lately, by what is decided: be it without a
// packet that was dropped.
type away struct {
	trouble
	last    time.Time          // when one was turned away; zero for never
	proxies int                // from which nearly all came then
	totals  model.ClientTotals // as of the latest snapshot
	cause   model.Cause        // of the verdict then
}

// see takes what the clients have come to by now.
func (h *history) see(a *Account, now time.Time) {
	w := &h.away
	before := w.totals
	w.totals = a.Totals
	if h.turnedAway(a, before) == 0 {
		return
	}
	if !h.lately(now) {
		w.trouble, w.cause = trouble{now, before}, model.CauseNone
	}
	w.last, w.proxies = now, len(a.Latest.Proxies)
}

// lately reports whether somebody was turned away within the time of a trouble that is remembered.
func (h *history) lately(now time.Time) bool {
	return !h.away.last.IsZero() && now.Sub(h.away.last) <= model.RecentFor
}

// turnedAway is how many there were since then, with those who had no answer where that is known.
func (h *history) turnedAway(a *Account, since model.ClientTotals) uint64 {
	t := a.Totals.Sub(since)
	t.Answers = h.answers(t.Answers)
	return t.TurnedAway()
}

// recentAway is the trouble of clients of which no packet was dropped; nil where there is none.
func (h *history) recentAway(a *Account, now time.Time) *model.Recent {
	w := &h.away
	if !h.lately(now) {
		return nil
	}
	return &model.Recent{
		Began: w.began, Ended: w.last, Latest: w.began, Over: now.Sub(w.last) >= model.Quiet,
		ClientsTurnedAway: new(h.turnedAway(a, w.before)), Proxies: w.proxies, Cause: w.cause,
	}
}

// recent is a listener's trouble of the last quarter of an hour, with how many clients
// were turned away in it where the handshakes were followed from its beginning.
func (h *history) recent(a *Account, r *model.Recent, now, opened time.Time) *model.Recent {
	h.see(a, now)
	if r == nil {
		h.recents = nil
		return h.recentAway(a, now)
	}
	recents := slices.DeleteFunc(slices.Clone(h.recents), func(t trouble) bool { return t.began.Before(r.Began) })
	if n := len(recents); n == 0 || !recents[n-1].began.Equal(r.Latest) {
		recents = append(recents, trouble{r.Latest, a.totalsBefore(r.Latest)})
	}
	h.recents = recents
	out, first := *r, recents[0]
	if h.lately(now) && h.away.began.Before(r.Began) { // who was turned away before the first packet was dropped is of the same trouble
		out.Began, first = h.away.began, h.away.trouble
	}
	if !first.began.Equal(out.Began) || opened.After(out.Began) {
		return r
	}
	out.ClientsTurnedAway, out.Proxies = new(h.turnedAway(a, first.before)), h.away.proxies
	if h.away.last.After(out.Ended) { // its packets came before
		out.Ended = h.away.last
	}
	return &out
}

// named is the trouble with the cause that the verdict names while clients are turned away.
func (h *history) named(r *model.Recent, now time.Time, cause model.Cause) *model.Recent {
	if h.away.last.Equal(now) && cause != model.CauseNone {
		h.away.cause = cause
	}
	if r == nil || r.Cause != model.CauseNone || r.Packets > 0 || r.QueueResets > 0 {
		return r
	}
	out := *r
	out.Cause = h.away.cause
	return &out
}

// quiet is the time after a trouble in which nothing was lost, but what is of that trouble.
type quiet struct {
	since time.Time // zero while a trouble lasts, and before any
	ended time.Time // the trouble
}

// ofBefore reports whether the listener is quiet: all that was lost lately is of clients that
// began before a trouble ended.
func (h *history) ofBefore(a *Account, r *model.Recent, lately *model.Lately, now time.Time) bool {
	q := &h.quiet
	switch lost := lostLately(lately); {
	case r == nil:
		*q = quiet{}
		return false
	case q.since.IsZero() && !lost:
		*q = quiet{now, r.Ended}
	case q.since.IsZero() && h.repeatedAlone(r, lately):
		*q = quiet{now, h.away.last}
	case q.since.IsZero():
		return false
	case lost && !h.repeatedAlone(r, lately) && !h.nobodyNew(a, r, lately):
		*q = quiet{}
		return false
	}
	return true
}

func lostLately(lately *model.Lately) bool {
	return lately.Losses.DroppedPackets > 0 || lately.Losses.QueueResets > 0 || lately.Losses.Clients.TurnedAway() > 0
}

// seen reports whether the clients of the listener, those of the trouble too, are all counted.
func seen(r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	return r.ClientsTurnedAway != nil && *r.ClientsTurnedAway > 0 &&
		c.Observed >= lately.Span && c.Untracked == 0 && c.PacketsLost == 0 && c.Flood == nil && !c.Estimated
}

// repeatedAlone reports whether the packets that were dropped lately can only be repeated
// ones of clients of before: no attempt was begun, and nobody let in, in that time.
func (h *history) repeatedAlone(r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	others := c.Outcomes
	others[model.ClientStalled] = 0 // known minutes later of a client that cannot say that it has left
	return lately.Losses.DroppedPackets > 0 && seen(r, lately) && c.Waiting+c.Settling == 0 && others == [model.NumClientOutcomes]uint64{}
}

// nobodyNew reports whether each client in trouble began before it was quiet: what clients that
// have left repeat is dropped, or lets them in, for minutes, whoever else comes meanwhile.
func (h *history) nobodyNew(a *Account, r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	return seen(r, lately) && lately.Losses.QueueResets == 0 && c.Waiting == 0 && c.Outcomes[model.ClientRefused] == 0 &&
		a.Troubled.Before(h.quiet.since)
}

// withoutThose is what was lost lately without what is of a trouble before, and that trouble.
func (h *history) withoutThose(r *model.Recent, lately *model.Lately) (*model.Recent, *model.Lately) {
	past, now := *r, *lately
	past.Ended, past.Over = h.quiet.ended, true
	c := *lately.Losses.Clients
	for _, o := range []model.ClientOutcome{model.ClientGaveUp, model.ClientStalled, model.ClientReset} {
		c.Outcomes[o] = 0
	}
	c.Answers.Unanswered, c.Answers.Closed = 0, 0
	now.Losses = model.Losses{AbandonedRequests: lately.Losses.AbandonedRequests, QueueResets: lately.Losses.QueueResets, Clients: &c}
	return &past, &now
}
