// Package match puts together which connectors a process's configuration has and which
// sockets it listens on, by ports, addresses and the names of its threads; and says of each
// what the kernel and the threads show now. It is pure: values go in, values come out.
package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// matching is one round of it.
type matching struct {
	found *Found
	pools Pools
	cpus  int

	left        []Listening // which no connector is configured for
	auto        []*catalina.Connector
	nameless    []nameless
	ofConnector map[*catalina.Connector]likelyPool
}

// Match puts connectors and listening ports together. What it cannot decide is
// in the second result.
func Match(f *Found, ports []Listening, pools Pools, cpus int) (Connectors, []model.Unavailable) {
	out := make(Connectors, len(ports))
	m := &matching{found: f, pools: pools, cpus: cpus, ofConnector: map[*catalina.Connector]likelyPool{}}
	for _, l := range ports {
		switch c := f.configured(l); {
		case c != nil:
			out[l.At()] = m.live(c, l)
		case f.JVMPorts[l.Port]:
			out[l.At()] = &model.Connector{Server: f.Server}
		default:
			m.left = append(m.left, l)
		}
	}
	m.candidates()
	decided := false
	for _, l := range m.left {
		if _, taken := out[l.At()]; !taken {
			out[l.At()] = m.unconfigured(l)
			decided = decided || out[l.At()].Kind().Limits
		}
	}
	f.countUsers(out)
	if decided {
		return out, nil
	}
	return out, f.undecided(m.left)
}

// countUsers tells each connector how many have its Executor, as configured: who looks
// at one port does not see what the others use of it.
func (f *Found) countUsers(connectors Connectors) {
	users := make(map[string]int)
	for i := range f.Connectors {
		users[f.Connectors[i].Executor]++
	}
	for _, c := range connectors {
		if c.Executor != "" {
			c.ExecutorUsers = users[c.Executor]
		}
	}
}

// undecided says that a connector's port was chosen by the system and cannot be
// distinguished from the process's other ports.
func (f *Found) undecided(left []Listening) []model.Unavailable {
	auto := f.withoutPort()
	if len(auto) == 0 || len(left) == 0 {
		return nil
	}
	return []model.Unavailable{{
		What: "which port belongs to the connector with port 0",
		Why:  fmt.Sprintf("%d such connectors, %d ports that no other connector explains", len(auto), len(left)),
		How:  "name the port with --port and " + ByHand,
	}}
}

// configured is the connector that says it listens on a port; of several the
// one bound to this very address, then one bound to all.
func (f *Found) configured(l Listening) *catalina.Connector {
	var best *catalina.Connector
	for i := range f.Connectors {
		c := &f.Connectors[i]
		if c.Port == l.Port && (best == nil || fits(c, l) > fits(best, l)) {
			best = c
		}
	}
	return best
}

func fits(c *catalina.Connector, l Listening) int {
	switch {
	case c.Address.IsValid() && c.Address == l.Address.Unmap():
		return 2
	case !c.Address.IsValid():
		return 1
	}
	return 0
}

// unconfigured is a port that no connector names: one chosen by the system
// when only one connector has such a port and only one port is left for it,
// else a Tomcat's if threads are named after it, else none of its.
func (m *matching) unconfigured(l Listening) *model.Connector {
	pool, named := m.pools.find(l.Port)
	if len(m.auto) == 1 && (named || len(m.left) == 1) {
		return m.live(m.auto[0], l)
	}
	if !named {
		pool, named = m.ofUnknownPort(l)
	}
	if !named {
		return &model.Connector{Server: m.found.Server}
	}
	return m.live(&catalina.Connector{
		Connector: model.Connector{Server: model.ServerTomcat().Name, Version: m.found.Version.String(), Protocol: pool.Protocol},
		Port:      l.Port, Address: l.Address.Unmap(), Endpoint: pool.endpoint(),
	}, l)
}

func (f *Found) withoutPort() []*catalina.Connector {
	var out []*catalina.Connector
	for i := range f.Connectors {
		if f.Connectors[i].Port == 0 {
			out = append(out, &f.Connectors[i])
		}
	}
	return out
}

// nameless are threads of a connector whose port was cut off and which no
// configured connector explains: a second one that the application makes
// itself, say for HTTPS.
type nameless struct {
	pool Pool
	// ports are those that may be meant: no connector and no other threads have
	// them. More than two are not needed.
	ports []uint16
}

// candidates finds them, once for all listeners that are left.
func (m *matching) candidates() {
	m.auto = m.found.withoutPort()
	for _, pool := range m.pools.all {
		if pool.Port != 0 || m.found.explains(pool, m.pools) {
			continue
		}
		n := nameless{pool: pool}
		for _, l := range m.left {
			_, named := m.pools.find(l.Port)
			if !named && len(n.ports) < 2 && !slices.Contains(n.ports, l.Port) && pool.mayListen(l.Address) {
				n.ports = append(n.ports, l.Port)
			}
		}
		m.nameless = append(m.nameless, n)
	}
}

// ofUnknownPort are the threads of a listener that can mean no other.
func (m *matching) ofUnknownPort(l Listening) (Pool, bool) {
	var found []nameless
	address := javaAddress(l.Address.Unmap()) + "-"
	for _, n := range m.nameless {
		if strings.HasPrefix(address, n.pool.Address) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		return Pool{}, false
	}
	return found[0].pool, len(found[0].ports) == 1
}

// explains says whether a configured connector may have threads of such names.
func (f *Found) explains(p Pool, pools Pools) bool {
	scheme, _, _ := strings.Cut(p.Protocol, "-")
	return slices.ContainsFunc(f.Connectors, func(c catalina.Connector) bool {
		_, named := pools.find(c.Port)
		return !named && strings.HasPrefix(c.Protocol, scheme+"-") && p.mayListen(c.Address)
	})
}

func (p Pool) endpoint() string { return p.Protocol[strings.LastIndexByte(p.Protocol, '-')+1:] }
