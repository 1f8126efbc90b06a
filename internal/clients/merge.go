package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// merge is a copy of a snapshot with clients in it.
func (f *Follower) merge(base *model.Snapshot) *model.Snapshot {
	out := *base
	out.Listeners = slices.Clone(base.Listeners)
	for i := range out.Listeners {
		f.listener(base, &out.Listeners[i])
	}
	out.Retired = slices.Clone(base.Retired)
	for i := range out.Retired {
		if a := accountOf(f.namespaces, out.Retired[i].ID); a != nil {
			out.Retired[i].Totals.Clients = new(a.totals)
			if !a.plain {
				out.Retired[i].Totals.Clients.Answers = model.ClientAnswers{}
			}
		}
	}
	out.Targets = slices.Clone(base.Targets)
	for i := range out.Targets {
		t := &out.Targets[i]
		if p := f.namespaces[t.NetNS]; p != nil && p.tap != nil {
			t.Refused = new(p.account(portOnly(t.Port)).totals.Outcomes[model.ClientRefused])
		}
	}
	out.NetNS = slices.Clone(base.NetNS)
	for i := range out.NetNS {
		if p := f.namespaces[out.NetNS[i].ID]; p != nil && p.tap != nil {
			out.NetNS[i].LetInElsewhere = p.conservation.elsewhere()
		}
	}
	out.Unavailable = slices.Concat(base.Unavailable, f.unavailable(), f.unseen(&out))
	return &out
}

// listener puts clients into one entry of the copy.
func (f *Follower) listener(base *model.Snapshot, l *model.Listener) {
	p := f.namespaces[l.ID.NetNS]
	if p == nil || p.tap == nil || sharesAddress(base, l) {
		return
	}
	port := p.account(portOnly(l.Port))
	a := port
	if l.Listening() {
		a = p.account(l.ID.Address)
		l.Totals.Clients = new(a.totals)
		l.Totals.Clients.Answers = answersOf(l.Totals.Clients.Answers, l.Connector)
		a.plain = l.Totals.Clients.Answers.Known
	}
	afterDrops := l.Recent == nil || a.troubled.After(l.Recent.Ended)
	l.Recent = a.recent(l, base.Time, p.opened)
	if l.Losses == nil || base.Interval <= 0 {
		return
	}
	within := func(span time.Duration) *model.Clients {
		c := a.clients(p, base.Time, span)
		c.Answers, c.AfterDrops = answersOf(c.Answers, l.Connector), afterDrops
		if l.Listening() && alone(base, l) { // it was down within the interval
			c.Outcomes[model.ClientRefused] = port.clients(p, base.Time, span).Outcomes[model.ClientRefused]
			if c.Outcomes[model.ClientRefused] > 0 {
				c.RefusedAt, c.RefusedBefore = port.refusedAt, !a.since.IsZero() && port.refused.Before(a.since.Add(decidedIn))
			}
		}
		return c
	}
	losses := *l.Losses
	losses.Clients = within(base.Interval)
	l.Losses = &losses
	if l.Lately != nil {
		lately := *l.Lately
		lately.Losses.Clients = within(lately.Span)
		l.Lately = &lately
		if a.ofBefore(l.Recent, l.Lately, base.Time) {
			l.Recent, l.Lately = a.withoutThose(l.Recent, l.Lately)
		}
	}
}

// answersOf are the answers that the protocol shows: where the server's first
// byte is none nothing is known.
func answersOf(a model.ClientAnswers, c *model.Connector) model.ClientAnswers {
	var why string
	switch {
	case c == nil:
		why = "it is not known which protocol is spoken here"
	case c.TLS:
		why = "the first byte of a server that speaks TLS is no answer"
	case c.HTTP2:
		why = "the first byte of a server that speaks HTTP/2 is no answer"
	case strings.HasPrefix(c.Protocol, "ajp"):
		why = "the clients of AJP are a proxy's connections"
	default:
		a.Known = true
		return a
	}
	return model.ClientAnswers{Why: why}
}

// alone reports whether nothing else of its namespace listens on the port.
func alone(s *model.Snapshot, l *model.Listener) bool {
	n := 0
	for i := range s.Listeners {
		if other := &s.Listeners[i]; other.Port == l.Port && other.ID.NetNS == l.ID.NetNS {
			n++
		}
	}
	return n == 1
}

// unavailable says once why handshakes are not followed somewhere.
func (f *Follower) unavailable() (out []model.Unavailable) {
	for _, id := range f.sortedNamespaces() {
		if err := f.namespaces[id].err; err != nil {
			u := model.Unavailable{What: "clients by outcome: handshakes", Why: err.Error()}
			switch {
			case errors.Is(err, syscall.EAFNOSUPPORT):
				u.Why, u.How = "packet sockets are not allowed (AF_PACKET)", "allow AF_PACKET (RestrictAddressFamilies= of a systemd unit, or its seccomp filter) and grant CAP_NET_RAW; --handshakes=off leaves this line out"
			case errors.Is(err, fs.ErrPermission):
				u.Why, u.How = "packets cannot be read without CAP_NET_RAW", "grant CAP_NET_RAW to count clients beside packets; --handshakes=off leaves this line out"
			}
			if len(f.namespaces) > 1 {
				u.What += fmt.Sprintf(" of network namespace %d", id)
			}
			if !slices.ContainsFunc(out, func(o model.Unavailable) bool { return o.Why == u.Why }) {
				out = append(out, u)
			}
		}
	}
	if f.beyond > 0 {
		out = append(out, model.Unavailable{
			What: "clients by outcome: handshakes of " + phrase.Count(f.beyond, "network namespace"),
			Why:  phrase.Sprintf("handshakes are followed in at most %d network namespaces", maxNamespaces),
			How:  "watch fewer namespaces with one agent",
		})
	}
	return out
}

func (f *Follower) sortedNamespaces() []uint64 {
	ids := make([]uint64, 0, len(f.namespaces))
	for id := range f.namespaces {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
