package accounts

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// namedIn is how long it may take until it is known what listens: the process of a server that was restarted is a new one.
const namedIn = time.Minute

// spoken takes which protocol the listener speaks. Until that is known of a new process, it is that of the one before.
func (h *history) spoken(c *model.Connector, now time.Time) {
	switch {
	case c != nil && !limitsAlone(c):
		h.speaks, h.unnamed = c, time.Time{}
		return
	case h.unnamed.IsZero():
		h.unnamed = now
	}
	if h.speaks == nil || now.Sub(h.unnamed) > namedIn {
		h.speaks = c
	}
}

// limitsAlone means that no more is known than limits that were given by hand.
func limitsAlone(c *model.Connector) bool { return c.Server == "" && c.Protocol == "" }

const unknownProtocol = "it is not known which protocol is spoken here"

// answers are those that the listener's protocol shows: where the server's first byte is none nothing is known. Where the limits alone
// are, who was sent no byte had no answer.
func (h *history) answers(a model.ClientAnswers) model.ClientAnswers {
	var why string
	switch c := h.speaks; {
	case c == nil:
		why = unknownProtocol
	case c.TLS:
		why = "the first byte of a server that speaks TLS is no answer"
	case c.HTTP2:
		why = "the first byte of a server that speaks HTTP/2 is no answer"
	case strings.HasPrefix(c.Protocol, "ajp"):
		why = "the clients of AJP are a proxy's connections"
	case limitsAlone(c):
		return model.ClientAnswers{Least: true, Why: unknownProtocol, Unanswered: a.Unanswered, Closed: a.Closed}
	case h.greeting.tls && !c.IsTomcat(): // of which the settings say what it speaks
		why = "its clients begin with TLS, and the first byte of a server that speaks it is no answer"
	case !h.answered && !c.KnownHTTP(): // the server ends no connection that has only to be read from
		return model.ClientAnswers{Least: true, Why: whyNone, Unanswered: a.Closed, Closed: a.Closed}
	default:
		a.Known = true
		return a
	}
	return model.ClientAnswers{Why: why}
}

const whyNone = "it is not known which protocol is spoken here, and none of its clients is known to have had a byte: some protocols have no answers"

// hears takes whether the server answers at all: one of twenty clients that sent something has had a byte, of those that have ended, and
// of those that are connected. Of logs and metrics (GELF, syslog, Graphite) nobody has. Once it did, it does, whoever waits later.
func (h *history) hears(a *Account, c *model.Connections) {
	t := &a.Totals.Answers
	answered, asked := t.Answered, t.Answered+t.Unanswered-min(t.Unanswered, t.Closed)
	if c != nil {
		answered += uint64(max(0, c.Answered()))
		asked += uint64(max(0, c.Accepted-c.Silent))
	}
	h.answered = h.answered || answered > 0 && answeredPart*answered >= asked
}

// answeredPart: of a server that answers one of as many clients has had a byte at least.
const answeredPart = 20

// greeting is how the clients of a listener begin.
type greeting struct {
	since  time.Time // of the listener
	before greetings // when it began
	judged bool
	tls    bool // by TLS
}

// greetings are the clients that began by TLS, where that was looked for, and all that said something and have ended.
type greetings struct{ tls, all uint64 }

// greetedLeast is how many clients change what is said of a server: one may be a scanner of ports, or mistaken.
const greetedLeast = 3

// greeted takes how the clients of the listener have begun: those of TLS are half of all that say something. Where a server is
// known to speak it, most of them may have been missed.
func (h *history) greeted(a *Account) {
	g, t := &h.greeting, &a.Totals
	now := greetings{t.TLSBegun, t.Answers.Answered + t.Answers.Unanswered + t.Answers.Unclear}
	if !g.since.Equal(a.Since) { // another one listens
		g.since, g.before = a.Since, now
	}
	tls, all := now.tls-min(now.tls, g.before.tls), now.all-min(now.all, g.before.all)
	if tls+all == 0 || g.judged && max(tls, all) < greetedLeast {
		return
	}
	part := uint64(2)
	if g.tls && tls >= greetedLeast {
		part = missedPart
	}
	g.judged, g.tls = true, part*tls >= all
}

// missedPart: of a server that speaks TLS one of as many clients is seen to begin with it at least.
const missedPart = 20
