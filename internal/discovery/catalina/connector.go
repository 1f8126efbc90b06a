package catalina

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// connector reads a <Connector>; nil for one that does not listen on TCP.
func (r *reader) connector(e *element, offset int, executors map[string]*executor) *Connector {
	if r.text(e, "unixDomainSocketPath").text != "" {
		return nil
	}
	if port := r.int(e, "port"); !port.hidden && (!port.ok || port.value < 0) {
		return nil // port is -1 by default: the connector never starts
	}
	c := &Connector{Line: e.line, Port: r.port(e, offset)}
	c.Server, c.Version = model.ServerTomcat().Name, r.server.Version.String()
	r.protocol(e, c)
	c.Address = r.address(e, c)
	r.limits(e, c)
	r.threads(e, c, executors)
	return c
}

// protocol distinguishes the classes (ProtocolHandler.create; before 10.0 the
// aliases HTTP/1.1 and AJP/1.3 could also mean APR, which the names of the
// threads show).
func (r *reader) protocol(e *element, c *Connector) {
	protocol := r.text(e, "protocol").text
	c.Scheme, c.Endpoint = "http", "nio"
	class := protocol[strings.LastIndexByte(protocol, '.')+1:]
	switch {
	case protocol == "" || protocol == "HTTP/1.1":
	case strings.HasPrefix(protocol, "AJP/"):
		c.Scheme = "ajp"
	case strings.HasPrefix(protocol, "org.apache.coyote.") && strings.HasSuffix(class, "Protocol"):
		if strings.HasPrefix(class, "Ajp") {
			c.Scheme = "ajp"
		}
		c.Endpoint = endpointOf(class)
	default:
		c.Endpoint = ""
	}
	r.encryption(e, c)
	c.Protocol = c.Scheme + "-" + c.Endpoint
	if c.TLS {
		c.Protocol = "https-jsse-" + c.Endpoint
	}
	c.Protocol = strings.TrimSuffix(c.Protocol, "-")
}

// endpointOf is the endpoint of a class like Http11Nio2Protocol.
func endpointOf(class string) string {
	for _, endpoint := range []string{"Nio2", "Nio", "Apr"} {
		if strings.Contains(class, endpoint) {
			return strings.ToLower(endpoint)
		}
	}
	return "bio" // Http11Protocol, AjpProtocol: Tomcat 7 and 8.0
}

// encryption: an AJP connector does neither TLS nor HTTP/2.
func (r *reader) encryption(e *element, c *Connector) {
	if c.Scheme != "http" {
		return
	}
	c.TLS = r.bool(e, "SSLEnabled").value == 1
	e.each("UpgradeProtocol", func(upgrade *element) {
		if strings.HasSuffix(r.text(upgrade, "className").text, ".Http2Protocol") {
			c.HTTP2 = true
		}
	})
}

// address is what the connector is bound to: an AJP connector to the loopback
// address unless configured otherwise. A host name stays unknown.
func (r *reader) address(e *element, c *Connector) netip.Addr {
	text := r.text(e, "address").text
	if text == "" && c.Scheme == "ajp" && r.server.Version.has(ajpOnLoopback()...) {
		text = "127.0.0.1"
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap()
}

// limits reads what belongs to the connector whatever runs its requests.
func (r *reader) limits(e *element, c *Connector) {
	byDefault := Defaults(r.server.Version, c.Scheme, c.Endpoint)
	c.MaxConnections = pick(r, r.int(e, "maxConnections"), "maxConnections", byDefault.MaxConnections, plain, c.refuseUnlimited)
	noteConnections(c.MaxConnections)
	// acceptCount and backlog, connectionTimeout and soTimeout were the same
	// (Connector.replacements of 8.5, AbstractProtocol).
	accept, timeout := []string{"acceptCount"}, []string{"connectionTimeout"}
	if !r.server.Version.has(oneName()...) {
		accept, timeout = append(accept, "backlog"), append(timeout, "soTimeout")
	}
	c.AcceptCount = pick(r, r.int(e, accept...), "acceptCount", byDefault.AcceptCount, plain, notPositive)
	c.MaxKeepAliveRequests = pick(r, r.int(e, "maxKeepAliveRequests"), "maxKeepAliveRequests", byDefault.MaxKeepAliveRequests, plain, nil)
	c.ConnectionTimeout = pick(r, r.int(e, timeout...), "connectionTimeout", byDefault.ConnectionTimeout, milliseconds, nil)
	c.KeepAliveTimeout = r.keepAlive(r.int(e, "keepAliveTimeout"), c.ConnectionTimeout)
}

// keepAlive is connectionTimeout unless it is set (AbstractEndpoint.
// getKeepAliveTimeout).
func (r *reader) keepAlive(s setting, connection *model.Setting[time.Duration]) *model.Setting[time.Duration] {
	out := pick(r, s, "keepAliveTimeout", 0, milliseconds, nil)
	if s.ok || out == nil {
		return out
	}
	if connection == nil {
		return nil
	}
	out.Value, out.Kind = connection.Value, connection.Kind
	out.Source = "connectionTimeout: " + connection.Source
	if connection.Uncertain {
		out.Note, out.Uncertain = connection.Note, true
	}
	return out
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// notPositive: AbstractEndpoint.setAcceptCount ignores what is not above 0.
func notPositive(n int) string {
	if n <= 0 {
		return fmt.Sprintf("%d is not above 0", n)
	}
	return ""
}

// refuseUnlimited: AprEndpoint.setMaxConnections does not know "no limit".
func (c *Connector) refuseUnlimited(n int) string {
	if c.Endpoint == "apr" && n == NoLimit {
		return "it cannot be switched off for APR"
	}
	return ""
}

func noteConnections(s *model.Setting[int]) {
	switch {
	case s == nil:
	case s.Value == NoLimit:
		s.Note = join(s.Note, "no limit")
	case s.Value <= 0:
		// LimitLatch compares before it counts: nothing gets past it.
		s.Note = join(s.Note, "no connection is ever accepted: only -1 means no limit")
		s.Value = 0
	}
}
