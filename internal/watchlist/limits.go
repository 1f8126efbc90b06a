package watchlist

import (
	"cmp"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Target is what a configuration file says of ports of one process, of ports of
// any process, or of all ports of one process.
type Target struct {
	Ports    []uint16 // none: all on which PID listens
	PID      int      // 0: any process of the namespaces that are read
	Labels   map[string]string
	Limits   Overrides
	Actuator string // base URL of the Actuator to ask, "" for none
}

// Overrides are limits given by hand; they beat what is discovered.
type Overrides struct {
	MaxConnections, AcceptCount, MaxThreads *model.Setting[int]
}

// Or fills in from other what o does not say.
func (o Overrides) Or(other Overrides) Overrides {
	return Overrides{
		MaxConnections: cmp.Or(o.MaxConnections, other.MaxConnections),
		AcceptCount:    cmp.Or(o.AcceptCount, other.AcceptCount),
		MaxThreads:     cmp.Or(o.MaxThreads, other.MaxThreads),
	}
}

// Apply lets the limits given by hand beat the discovered ones.
func (o Overrides) Apply(c *model.Connector) *model.Connector {
	if o == (Overrides{}) {
		return c
	}
	out := model.Connector{}
	if c != nil {
		out = *c
	}
	out.MaxConnections = cmp.Or(o.MaxConnections, out.MaxConnections)
	out.AcceptCount = cmp.Or(o.AcceptCount, out.AcceptCount)
	out.MaxThreads = cmp.Or(o.MaxThreads, out.MaxThreads)
	return &out
}

// ByHand is a limit that somebody gave tcpdiag, nil for none. source is where:
// "flag --max-threads", "tcpdiag.yml line 7". Its kind is not that of a file,
// which would say that the server's own configuration was read.
func ByHand(value *int, source string) *model.Setting[int] {
	if value == nil {
		return nil
	}
	return &model.Setting[int]{Value: *value, Kind: model.SourceFlag, Source: source}
}
