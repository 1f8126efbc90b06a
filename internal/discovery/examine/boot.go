package examine

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// springboot is the process as package springboot wants it.
func (t *target) springboot() launch.Process {
	p := launch.Process{
		Args: t.args, Env: t.env, EnvKnown: t.env != nil, Exe: t.files.exe,
		Open: t.files.Open, ReadDir: t.files.ReadDir,
	}
	if t.jvm != nil {
		p.VMArgs, p.JavaVersion = t.jvm.VMArgs, t.jvm.Version
	}
	return p
}

// boot reads a Spring Boot application; nil when the process is none, or has
// another server than Tomcat. Where the jar cannot be read, an application is
// still known by what its command line says to Tomcat, and by nothing else.
func boot(t *target) *match.Found {
	env, err := springboot.Load(t.springboot())
	if err != nil {
		return nil
	}
	if server, _ := model.ServerNamed(env.Server()); server.Name != "" && !server.Limits {
		return nil
	}
	settings := env.Settings()
	backends, unread := env.Backends()
	f := &match.Found{Server: model.ServerJVM().Name, Unavailable: slices.Concat(said(env.Unavailable(), t), settings.Unavailable, unread)}
	c := bootLimits(env, settings)
	if env.Kind() == classpath.KindNone {
		onlyGiven().connector(&c)
		if !limited(&c) {
			return f
		}
		settings.Port = edited(onlyGiven(), settings.Port)
	} else {
		f.Backends = backendsOf(t, backends)
	}
	if t.env == nil {
		doubtEnvironment().connector(&c)
		f.Backends = doubtEnvironment().backends(f.Backends)
	}
	doubtCode(&c, env.CodeLimits())
	f.Version, _ = catalina.ParseVersion(c.Version)
	f.Connectors = bootConnectors(c, settings, managementTLS(env, c.TLS))
	f.Management = managementURL(env, settings, managementTLS(env, c.TLS))
	return f
}

// said drops what the target has said of itself, with better advice: the
// environment, and every file sought in a working directory that nobody may
// enter.
func said(list []model.Unavailable, t *target) []model.Unavailable {
	return slices.DeleteFunc(list, func(u model.Unavailable) bool {
		return t.env == nil && u.Subject == model.SubjectEnvironment || t.files.dir == "" && u.Subject == model.SubjectWorkingFile
	})
}

// bootLimits are the settings as a connector.
func bootLimits(env *springboot.Environment, s springboot.Settings) model.Connector {
	bootVersion, tomcatVersion := env.Version()
	c := model.Connector{
		Server: model.ServerTomcat().Name, Framework: "spring-boot",
		Version: tomcatVersion, FrameworkVersion: bootVersion, Protocol: "http-nio",
		MaxConnections: s.MaxConnections, AcceptCount: s.AcceptCount,
		MaxThreads: s.MaxThreads, MinSpareThreads: s.MinSpareThreads, MaxQueue: s.MaxQueue,
		MaxKeepAliveRequests: s.MaxKeepAliveRequests,
		ConnectionTimeout:    s.ConnectionTimeout, KeepAliveTimeout: s.KeepAliveTimeout,
		VirtualThreads: s.VirtualThreads,
		TLS:            s.TLS != nil && s.TLS.Value,
		HTTP2:          s.HTTP2 != nil && s.HTTP2.Value,
	}
	setTLS(&c, c.TLS)
	if c.MinSpareThreads != nil && c.MaxThreads != nil {
		c.MinSpareThreads = catalina.CapSpare(c.MinSpareThreads, c.MaxThreads)
	}
	withoutPool(&c)
	return c
}

// setTLS gives a connector the protocol that its threads are named after.
func setTLS(c *model.Connector, on bool) {
	c.TLS, c.Protocol = on, "http-nio"
	if on {
		c.Protocol = "https-jsse-nio"
	}
}

// withoutPool takes away what has no meaning with virtual threads, so that
// nobody compares with it.
func withoutPool(c *model.Connector) {
	if c.VirtualThreads == nil || !c.VirtualThreads.Value {
		return
	}
	c.VirtualThreads = new(*c.VirtualThreads)
	c.VirtualThreads.Note = catalina.NoThreadLimit
	c.MaxThreads, c.MinSpareThreads, c.MaxQueue = nil, nil, nil
}

// bootConnectors are the application's connector and, when Actuator has a port
// of its own, a second one. Both get the same limits: the customizer that sets
// them is applied to the management context's server too.
func bootConnectors(c model.Connector, s springboot.Settings, managementTLS bool) []catalina.Connector {
	var out []catalina.Connector
	add := func(c model.Connector, port int, address string) {
		if port < 0 || port > 1<<16-1 { // -1: no server
			return
		}
		bound, _ := netip.ParseAddr(address)
		out = append(out, catalina.Connector{
			Connector: c, Port: uint16(port), Address: bound.Unmap(), Scheme: "http", Endpoint: "nio",
		})
	}
	port, address := 0, "" // a port that is not known is like one chosen by the system
	if s.Port != nil {
		port = s.Port.Value
	}
	if s.Address != nil {
		address = s.Address.Value
	}
	add(c, port, address)
	if separateManagementPort(s) {
		management := c
		setTLS(&management, managementTLS)
		add(management, s.ManagementPort.Value, "")
	}
	return out
}

func separateManagementPort(s springboot.Settings) bool {
	return s.ManagementPort != nil && s.ManagementPort.Value > 0 && s.Port != nil && s.ManagementPort.Value != s.Port.Value
}

// managementTLS: the management server takes the application's server.ssl, unless
// it has an ssl of its own (ManagementWebServerFactoryCustomizer), which is on
// unless its enabled says no (Ssl.isEnabled).
func managementTLS(env *springboot.Environment, inherited bool) bool {
	const name = "management.server.ssl."
	if v, ok, err := env.Get(name + "enabled"); ok {
		return err != nil || !strings.EqualFold(v.Text, "false")
	}
	for _, property := range []string{"key-store", "bundle", "certificate", "key-alias"} {
		if v, ok, err := env.Get(name + property); ok && err == nil && v.Text != "" {
			return true
		}
	}
	return inherited
}

// managementURL is where Actuator answers, if that is a port of its own and
// without TLS.
func managementURL(env *springboot.Environment, s springboot.Settings, tls bool) string {
	if !separateManagementPort(s) || tls {
		return ""
	}
	text := func(name, standard string) string {
		v, ok, err := env.Get(name)
		if !ok || err != nil || v.Text == "" {
			return standard
		}
		return v.Text
	}
	host, err := netip.ParseAddr(text("management.server.address", "127.0.0.1"))
	if err != nil || host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	base := text("management.server.base-path", text("management.server.servlet.context-path", ""))
	base += "/" + strings.Trim(text("management.endpoints.web.base-path", "/actuator"), "/")
	return "http://" + net.JoinHostPort(host.String(), strconv.Itoa(s.ManagementPort.Value)) + strings.TrimSuffix(base, "/")
}
