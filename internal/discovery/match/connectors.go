package match

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Connectors are a process's connectors by the address and port of the
// listening socket, as it was asked for: two of one port have limits of their
// own.
type Connectors map[netip.AddrPort]*model.Connector

// At is a listening socket's key.
func (l Listening) At() netip.AddrPort { return netip.AddrPortFrom(l.Address, l.Port) }

// OnPort are the keys of that port.
func (cs Connectors) OnPort(port uint16) []netip.AddrPort {
	var out []netip.AddrPort
	for at := range cs {
		if at.Port() == port {
			out = append(out, at)
		}
	}
	return out
}

// Named are the listeners that a connector of this name ("http-nio-8080") may
// have: by the port at its end, and of several by the address in front of that,
// which a connector bound to all addresses does not have. A port chosen by the
// system is not in the name ("http-nio-auto-1"): then it is the only Tomcat's,
// if there is only one.
func (cs Connectors) Named(name string) []netip.AddrPort {
	if strings.Contains(name, "-auto-") {
		return cs.onlyTomcat()
	}
	all := cs.OnPort(PortOf(name[strings.LastIndexByte(name, '-')+1:]))
	if len(all) <= 1 {
		return all
	}
	var bound, unbound []netip.AddrPort
	for _, at := range all {
		address := at.Addr().Unmap()
		switch {
		case strings.Contains(name, "-"+javaAddress(address)+"-"):
			bound = append(bound, at)
		case address.IsUnspecified():
			unbound = append(unbound, at)
		}
	}
	if len(bound) > 0 {
		return bound
	}
	return unbound
}

func (cs Connectors) onlyTomcat() []netip.AddrPort {
	var out []netip.AddrPort
	for at, c := range cs {
		if c.Kind().Limits {
			out = append(out, at)
		}
	}
	if len(out) > 1 {
		return nil
	}
	return out
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

// Listening is a listening socket of a process.
type Listening struct {
	Port    uint16
	Address netip.Addr
	// SendQ is the backlog in force (Send-Q of the LISTEN socket), 0 when it
	// is not known.
	SendQ int
}

// Found is what a process turned out to be. It does not change afterwards.
type Found struct {
	Server     string // of ports that none of the connectors has
	Connectors []catalina.Connector
	Backends   []model.Backend // servers that its configuration names
	Version    catalina.Version
	// Management is where Spring Boot's Actuator answers, "" when that is the
	// application's own port or there is none.
	Management  string
	JVMPorts    map[uint16]bool // the JVM's own: a debugger's, JMX's
	Unavailable []model.Unavailable
}

// ByHand is the way out when nothing else helps.
const ByHand = "give the limits by hand: --max-connections, --accept-count, --max-threads"
