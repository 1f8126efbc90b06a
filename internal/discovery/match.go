package discovery

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// match puts connectors and listening ports together. What it cannot decide is
// in the second result.
func (f *found) match(ports []Listening, pools Pools, cpus int) (Connectors, []model.Unavailable) {
	out := make(Connectors, len(ports))
	var left []Listening
	for _, l := range ports {
		switch c := f.configured(l); {
		case c != nil:
			out[l.at()] = f.live(c, l, pools, cpus)
		case f.jvmPorts[l.Port]:
			out[l.at()] = &model.Connector{Server: f.server}
		default:
			left = append(left, l)
		}
	}
	decided := false
	for _, l := range left {
		if _, taken := out[l.at()]; !taken {
			out[l.at()] = f.unconfigured(l, left, pools, cpus)
			decided = decided || out[l.at()].Server == serverTomcat
		}
	}
	if decided {
		return out, nil
	}
	return out, f.undecided(left)
}

// undecided says that a connector's port was chosen by the system and cannot be
// told from the process's other ports.
func (f *found) undecided(left []Listening) []model.Unavailable {
	auto := f.withoutPort()
	if len(auto) == 0 || len(left) == 0 {
		return nil
	}
	return []model.Unavailable{{
		What: "which port belongs to the connector with port 0",
		Why:  fmt.Sprintf("%d such connectors, %d ports that no other connector explains", len(auto), len(left)),
		How:  "name the port with --port and " + byHand,
	}}
}

// configured is the connector that says it listens on a port; of several the
// one bound to this very address, then one bound to all.
func (f *found) configured(l Listening) *catalina.Connector {
	var best *catalina.Connector
	for i := range f.connectors {
		c := &f.connectors[i]
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
func (f *found) unconfigured(l Listening, left []Listening, pools Pools, cpus int) *model.Connector {
	auto := f.withoutPort()
	pool, named := pools.find(l.Port)
	if len(auto) == 1 && (named || len(left) == 1) {
		return f.live(auto[0], l, pools, cpus)
	}
	if !named {
		pool, named = f.nameless(l, left, pools)
	}
	if !named {
		return &model.Connector{Server: f.server}
	}
	return f.live(&catalina.Connector{
		Connector: model.Connector{Server: serverTomcat, Version: f.version.String(), Protocol: pool.Protocol},
		Port:      l.Port, Address: l.Address.Unmap(), Endpoint: pool.endpoint(),
	}, l, pools, cpus)
}

func (f *found) withoutPort() []*catalina.Connector {
	var out []*catalina.Connector
	for i := range f.connectors {
		if f.connectors[i].Port == 0 {
			out = append(out, &f.connectors[i])
		}
	}
	return out
}

// nameless finds threads of a connector whose port was cut off, when neither
// another port nor a configured connector can be meant: a second connector that
// the application makes itself, say for HTTPS.
func (f *found) nameless(l Listening, left []Listening, pools Pools) (Pool, bool) {
	var found []Pool
	for _, pool := range pools.All() {
		if pool.Port == 0 && pool.mayListen(l.Address) && !f.explains(pool, pools) {
			found = append(found, pool)
		}
	}
	if len(found) != 1 {
		return Pool{}, false
	}
	others := slices.ContainsFunc(left, func(o Listening) bool {
		_, named := pools.find(o.Port)
		return o.Port != l.Port && !named && found[0].mayListen(o.Address)
	})
	return found[0], !others
}

// explains says whether a configured connector may have threads of such names.
func (f *found) explains(p Pool, pools Pools) bool {
	scheme, _, _ := strings.Cut(p.Protocol, "-")
	return slices.ContainsFunc(f.connectors, func(c catalina.Connector) bool {
		_, named := pools.find(c.Port)
		return !named && strings.HasPrefix(c.Protocol, scheme+"-") && p.mayListen(c.Address)
	})
}

// mayListen says whether the address in the threads' names, as far as it goes,
// can be this one.
func (p Pool) mayListen(address netip.Addr) bool {
	if p.Address == "" {
		return true
	}
	return strings.HasPrefix(javaAddress(address.Unmap())+"-", p.Address)
}

// javaAddress is the address as InetAddress.getHostAddress prints it: IPv6
// without "::".
func javaAddress(a netip.Addr) string {
	if a.Is4() || !a.IsValid() {
		return a.String()
	}
	b := a.As16()
	parts := make([]string, 8)
	for i := range parts {
		parts[i] = fmt.Sprintf("%x", uint(b[2*i])<<8|uint(b[2*i+1]))
	}
	return strings.Join(parts, ":")
}

func (p Pool) endpoint() string { return p.Protocol[strings.LastIndexByte(p.Protocol, '-')+1:] }
