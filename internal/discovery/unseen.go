package discovery

import (
	"cmp"
	"context"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// callersNamespace is the caller's network namespace, also where /proc shows
// another pid namespace's processes.
const callersNamespace = "/proc/thread-self/ns/net"

// DiscoverUnseen returns what the given Actuators report about listeners of the
// caller's own network namespace whose process is not in this /proc: a sidecar
// that does not share the pod's processes. Only connectors that an Actuator
// names are in the result, which is the caller's own.
func (d *Discoverer) DiscoverUnseen(ctx context.Context, listening []match.Listening) (match.Connectors, []model.Unavailable) {
	d.mu.Lock()
	actuators := d.actuators // replaced, never changed
	d.mu.Unlock()
	named := make(match.Connectors)
	var unavailable []model.Unavailable
	for _, a := range actuators {
		candidates := unseen(listening)
		if a.PID != 0 || !a.answersFor(0, candidates) {
			continue
		}
		readings, err := d.askUnseen(ctx, a, candidates)
		if err != nil {
			unavailable = append(unavailable, model.Unavailable{
				What: "Actuator at " + shownURL(a.URL), Why: err.Error(), How: exposeMetrics,
			})
		}
		for _, r := range readings {
			r.apply(candidates)
			for _, at := range candidates.Named(r.name) {
				named[at] = candidates[at]
				r.nameProtocol(named[at])
			}
		}
	}
	return named, unavailable
}

// unseen returns a connector for each socket of which nothing is known but the
// kernel's backlog.
func unseen(listening []match.Listening) match.Connectors {
	out := make(match.Connectors, len(listening))
	for _, l := range listening {
		out[l.At()] = &model.Connector{
			Server: model.ServerTomcat().Name, Framework: "spring-boot", // whose else is an Actuator that names it
			AcceptCount: match.Effective(nil, l.SendQ),
		}
	}
	return out
}

func (d *Discoverer) askUnseen(ctx context.Context, a Actuator, candidates match.Connectors) ([]reading, error) {
	base := a.url()
	d.mu.Lock()
	m := d.unseen[base]
	if m == nil {
		m = new(meters)
		d.unseen[base] = m
	}
	d.mu.Unlock()
	m.refresh(ctx, d, d.doorOf(0, a, candidates), base, "")
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readings, m.err
}

// nameProtocol takes the protocol from the connector's name, "https-jsse-nio-8443".
func (r reading) nameProtocol(c *model.Connector) {
	protocol, _, _ := match.CutProtocol(r.name)
	c.Protocol = cmp.Or(c.Protocol, protocol)
	c.TLS = c.TLS || strings.HasPrefix(c.Protocol, "https")
}
