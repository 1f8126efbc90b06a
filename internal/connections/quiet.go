package connections

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// quiet counts idle connections by the time since their last data in either direction,
// in steps of quietStep; the last element has all that are older.
type quiet [64]uint32

const quietStep = 2 * time.Second

func (q *quiet) add(age time.Duration) {
	q[max(0, min(int(age/quietStep), len(q)-1))]++
}

// recent are those that had data within the last step.
func (q *quiet) recent() int { return int(q[0]) }

// keepAliveSlack is how much later than keepAliveTimeout Tomcat may end a connection: its
// poller looks once a second (NioEndpoint.Poller.timeout), on a busy machine later.
const keepAliveSlack = 3 * time.Second

// outlived moves the idle connections that have been quiet for longer than
// keepAliveTimeout to Unclassified: a connection between two requests would have been
// ended. Without a timeout that is known, or with a long one, nothing is said.
func (q *quiet) outlived(c *model.Connections, connector *model.Connector) {
	timeout := keepAliveTimeout(connector)
	if timeout <= 0 {
		return
	}
	first := int((timeout+keepAliveSlack)/quietStep) + 1
	if first >= len(q) {
		return
	}
	for _, n := range q[first:] {
		c.Outlived += int(n)
	}
	c.Phases[model.Idle] -= c.Outlived
	c.Phases[model.Unclassified] += c.Outlived
}

// keepAliveTimeout is that of the connector; 0 where it is not known for certain, and for
// AJP, whose connections a proxy keeps for ever unless a timeout is set (AbstractAjpProtocol).
func keepAliveTimeout(connector *model.Connector) time.Duration {
	if connector == nil || connector.TLS || connector.HTTP2 || strings.HasPrefix(connector.Protocol, "ajp") {
		return 0
	}
	timeout := connector.KeepAlive()
	if timeout == nil || timeout.Uncertain {
		return 0
	}
	return timeout.Value
}
