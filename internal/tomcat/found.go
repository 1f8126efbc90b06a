package tomcat

import (
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/tomcat/catalina"
)

// The kinds of process that are no Tomcat.
const (
	serverTomcat = "tomcat"
	serverJVM    = "jvm"
	serverOther  = "other"
)

// found is what a process turned out to be.
type found struct {
	connectors  []catalina.Connector
	other       backlog.Connector // for ports that none of them has
	version     catalina.Version
	unavailable []backlog.Unavailable
}

// identify tells what a process is.
func identify(t *target) *found {
	if options, arguments, ok := bootstrap(t.args); ok {
		return standalone(t, options, arguments)
	}
	f := &found{other: backlog.Connector{Server: serverOther}}
	if t.isJava() {
		f.other.Server = serverJVM
	}
	return f
}

// standalone reads a Tomcat of its own.
func standalone(t *target, options, arguments []string) *found {
	server, err := catalina.Load(t.catalina(options, arguments))
	f := &found{
		connectors:  server.Connectors,
		other:       backlog.Connector{Server: serverJVM},
		version:     server.Version,
		unavailable: server.Unavailable,
	}
	if err != nil {
		f.unavailable = append(f.unavailable, backlog.Unavailable{
			What: server.File, Why: err.Error(),
			How: "give the limits by hand: --max-connections, --accept-count, --max-threads",
		})
	}
	return f
}

// match finds the connector of each port and adds what is true now.
func (f *found) match(ports []Listening, pools Pools) map[uint16]*backlog.Connector {
	out := make(map[uint16]*backlog.Connector, len(ports))
	for _, l := range ports {
		c := f.connector(l)
		if c == nil {
			out[l.Port] = f.unknown(l, pools)
			continue
		}
		out[l.Port] = c.live(l, pools, f)
	}
	return out
}

// connector is the one that listens on a port; of several the one bound to
// this very address, then one bound to all.
func (f *found) connector(l Listening) *connector {
	fits := func(c catalina.Connector, address netip.Addr) bool {
		return c.Port == l.Port && c.Address == address
	}
	for _, address := range []netip.Addr{l.Address.Unmap(), {}} {
		i := slices.IndexFunc(f.connectors, func(c catalina.Connector) bool { return fits(c, address) })
		if i >= 0 {
			return &connector{f.connectors[i]}
		}
	}
	i := slices.IndexFunc(f.connectors, func(c catalina.Connector) bool { return c.Port == l.Port })
	if i >= 0 {
		return &connector{f.connectors[i]}
	}
	return nil
}

// unknown is a port that the configuration does not explain: a Tomcat's if
// threads are named after it.
func (f *found) unknown(l Listening, pools Pools) *backlog.Connector {
	c := f.other
	if workers, protocol, ok := pools.For(l.Port); ok {
		c.Server, c.Protocol, c.PoolThreads = serverTomcat, protocol, &workers
	}
	return &c
}

type connector struct{ catalina.Connector }

// live is the connector with what the kernel and the thread names say.
func (c *connector) live(l Listening, pools Pools, f *found) *backlog.Connector {
	out := c.Connector.Connector
	if pool, ok := pools.find(l.Port); ok {
		out.Protocol = pool.Protocol
		if workers := pool.Count(catalina.Housekeeping(f.version, c.Endpoint, 2)); c.NamePrefix == "" {
			out.PoolThreads = &workers
		}
	}
	return &out
}
