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
	default:
		a.Known = true
		return a
	}
	return model.ClientAnswers{Why: why}
}
