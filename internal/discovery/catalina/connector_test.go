package catalina_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// limits are a connector's values without their sources.
type limits struct {
	conns, accept, threads, spare, requests int
	timeout, keepAlive                      time.Duration
}

const unknown = -999

func number(s *model.Setting[int]) int {
	if s == nil {
		return unknown
	}
	return s.Value
}

func limitsOf(c catalina.Connector) limits {
	return limits{
		number(c.MaxConnections), number(c.AcceptCount), number(c.MaxThreads), number(c.MinSpareThreads),
		number(c.MaxKeepAliveRequests), c.ConnectionTimeout.Value, c.KeepAliveTimeout.Value,
	}
}

func TestLimits(t *testing.T) {
	const ms = time.Millisecond
	standard := limits{8192, 100, 200, 10, 100, time.Minute, time.Minute}
	with := func(change func(*limits)) limits { l := standard; change(&l); return l }
	nio2, ajp := `protocol="org.apache.coyote.http11.Http11Nio2Protocol"`, `protocol="AJP/1.3"`
	apr := `protocol="org.apache.coyote.http11.Http11AprProtocol"`
	tests := map[string]struct {
		version, attributes string
		want                limits
	}{
		"defaults of 11":                  {"11.0.24", ``, standard},
		"defaults of 10.1":                {"10.1.59", ``, standard},
		"defaults of 9.0.30":              {"9.0.30", ``, standard},
		"defaults of 9.0.29":              {"9.0.29", ``, with(func(l *limits) { l.conns = 10000 })},
		"defaults of 8.5.76":              {"8.5.76", ``, standard},
		"defaults of 8.5.75":              {"8.5.75", ``, with(func(l *limits) { l.conns = 10000 })},
		"NIO2 had no limit in 8.5.75":     {"8.5.75", nio2, with(func(l *limits) { l.conns = catalina.NoLimit })},
		"NIO2 had no limit in 8.5.0":      {"8.5.0", nio2, with(func(l *limits) { l.conns = catalina.NoLimit })},
		"NIO2 had no limit in 9.0.0.M1":   {"9.0.0.M1", nio2, with(func(l *limits) { l.conns = catalina.NoLimit })},
		"NIO2 had no limit in 9.0.17":     {"9.0.17", nio2, with(func(l *limits) { l.conns = catalina.NoLimit })},
		"NIO2 had 10000 in 9.0.19":        {"9.0.19", nio2, with(func(l *limits) { l.conns = 10000 })},
		"NIO2 had 10000 in 8.0":           {"8.0.53", nio2, with(func(l *limits) { l.conns = 10000 })},
		"NIO2 since 8.5.76":               {"8.5.76", nio2, standard},
		"NIO2 of an unknown version":      {"", nio2, standard},
		"AJP over NIO2 had none either":   {"8.5.75", `protocol="org.apache.coyote.ajp.AjpNio2Protocol"`, with(func(l *limits) { l.conns, l.timeout, l.keepAlive = catalina.NoLimit, -ms, -ms })},
		"APR always had 8192":             {"8.5.75", apr, standard},
		"BIO: a thread per connection":    {"8.0.53", `protocol="org.apache.coyote.http11.Http11Protocol" maxThreads="7"`, with(func(l *limits) { l.conns, l.threads, l.spare = 7, 7, 7 })},
		"milestones count as the line's":  {"10.0.0-M5", ``, standard},
		"AJP waits for ever":              {"9.0.117", ajp, with(func(l *limits) { l.timeout, l.keepAlive = -ms, -ms })},
		"all given":                       {"9.0.117", `maxConnections="1" acceptCount="2" maxThreads="30" minSpareThreads="4" maxKeepAliveRequests="5" connectionTimeout="6" keepAliveTimeout="7"`, limits{1, 2, 30, 4, 5, 6 * ms, 7 * ms}},
		"keepAliveTimeout follows":        {"9.0.117", `connectionTimeout="20000"`, with(func(l *limits) { l.timeout, l.keepAlive = 20*time.Second, 20*time.Second })},
		"no limit":                        {"9.0.117", `maxConnections="-1"`, with(func(l *limits) { l.conns = -1 })},
		"-1 is nothing to APR":            {"9.0.117", apr + ` maxConnections="-1"`, standard},
		"only -1 is no limit":             {"9.0.117", `maxConnections="-2"`, with(func(l *limits) { l.conns = 0 })},
		"acceptCount 0":                   {"9.0.117", `acceptCount="0"`, standard},
		"acceptCount negative":            {"9.0.117", `acceptCount="-5"`, standard},
		"the older name of acceptCount":   {"8.5.100", `backlog="12"`, with(func(l *limits) { l.accept = 12 })},
		"the older name of the timeout":   {"8.5.100", `soTimeout="1000"`, with(func(l *limits) { l.timeout, l.keepAlive = time.Second, time.Second })},
		"older names until 9.0.0.M11":     {"9.0.0.M11", `backlog="12" soTimeout="1000"`, with(func(l *limits) { l.conns, l.accept, l.timeout, l.keepAlive = 10000, 12, time.Second, time.Second })},
		"no older names since 9.0.0.M12":  {"9.0.0.M12", `backlog="12" soTimeout="1000"`, with(func(l *limits) { l.conns = 10000 })},
		"nor in 9.0, 10.1 and 11":         {"11.0.24", `backlog="12" soTimeout="1000"`, standard},
		"nor where both are given":        {"9.0.117", `acceptCount="7" backlog="12" connectionTimeout="5000" soTimeout="1000"`, with(func(l *limits) { l.accept, l.timeout, l.keepAlive = 7, 5*time.Second, 5*time.Second })},
		"not a number":                    {"9.0.117", `maxThreads="many" acceptCount="1e3" maxConnections="0x10" connectionTimeout=" 5 "`, standard},
		"beyond 32 bits":                  {"9.0.117", `maxThreads="4294967296"`, standard},
		"a plus sign is fine":             {"9.0.117", `maxThreads="+20"`, with(func(l *limits) { l.threads = 20 })},
		"spare threads above the maximum": {"9.0.117", `maxThreads="5" minSpareThreads="50"`, with(func(l *limits) { l.threads, l.spare = 5, 5 })},
		"other case is another attribute": {"9.0.117", `maxthreads="5" MAXCONNECTIONS="3"`, standard},
		"virtual threads":                 {"10.1.59", `useVirtualThreads="TRUE" maxThreads="5"`, with(func(l *limits) { l.threads, l.spare = unknown, unknown })},
		"virtual threads came later":      {"10.1.9", `useVirtualThreads="true" maxThreads="5" minSpareThreads="5"`, with(func(l *limits) { l.threads, l.spare = 5, 5 })},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, limitsOf(connector(t, tt.version, `<Connector port="8080" `+tt.attributes+`/>`)))
		})
	}
}

func TestNotesAndSources(t *testing.T) {
	c := connector(t, "9.0.117", `<Connector
		port="8080" maxThreads="20"
		acceptCount='-3'
		maxConnections="-1" connectionTimeout = "20000" minSpareThreads="30"/>`)
	require.Equal(t, model.Setting[int]{Value: 20, Kind: model.SourceFile, Source: "conf/server.xml line 4"}, *c.MaxThreads)
	require.Equal(t, model.Setting[int]{
		Value: 100, Kind: model.SourceDefault, Source: "default of Tomcat 9.0.117",
		Note: "acceptCount (conf/server.xml line 5) is ignored: -3 is not above 0",
	}, *c.AcceptCount)
	require.Equal(t, "no limit", c.MaxConnections.Note)
	require.Equal(t, "held down by maxThreads", c.MinSpareThreads.Note)
	require.Equal(t, "connectionTimeout: conf/server.xml line 6", c.KeepAliveTimeout.Source)
	require.Equal(t, model.SourceFile, c.KeepAliveTimeout.Kind)
	require.Equal(t, 3, c.Line)
	require.Equal(t, "default of Tomcat (version unknown)", connector(t, "", `<Connector port="8080"/>`).AcceptCount.Source)
}

func TestProtocols(t *testing.T) {
	tests := map[string]struct {
		version, attributes string
		protocol            string
		address             string
		tls, http2          bool
	}{
		"default":                        {"9.0.117", ``, "http-nio", "", false, false},
		"HTTP/1.1":                       {"9.0.117", `protocol="HTTP/1.1"`, "http-nio", "", false, false},
		"NIO2":                           {"9.0.117", `protocol="org.apache.coyote.http11.Http11Nio2Protocol"`, "http-nio2", "", false, false},
		"APR":                            {"9.0.117", `protocol="org.apache.coyote.http11.Http11AprProtocol"`, "http-apr", "", false, false},
		"BIO":                            {"8.0.53", `protocol="org.apache.coyote.http11.Http11Protocol"`, "http-bio", "", false, false},
		"another's class":                {"9.0.117", `protocol="com.example.Http"`, "http", "", false, false},
		"AJP on the loopback address":    {"9.0.31", `protocol="AJP/1.3"`, "ajp-nio", "127.0.0.1", false, false},
		"AJP on all addresses, long ago": {"9.0.30", `protocol="AJP/1.3"`, "ajp-nio", "", false, false},
		"AJP NIO2":                       {"9.0.117", `protocol="org.apache.coyote.ajp.AjpNio2Protocol" address="10.0.0.1"`, "ajp-nio2", "10.0.0.1", false, false},
		"AJP does no TLS":                {"9.0.117", `protocol="AJP/1.3" SSLEnabled="true"`, "ajp-nio", "127.0.0.1", false, false},
		"HTTPS":                          {"9.0.117", `SSLEnabled="true"`, "https-jsse-nio", "", true, false},
		"secure is only said":            {"9.0.117", `secure="true" scheme="https"`, "http-nio", "", false, false},
		"IPv6":                           {"9.0.117", `address="[::1]"`, "http-nio", "::1", false, false},
		"mapped":                         {"9.0.117", `address="::ffff:127.0.0.1"`, "http-nio", "127.0.0.1", false, false},
		"a host's name":                  {"9.0.117", `address="localhost"`, "http-nio", "", false, false},
		"HTTP/2":                         {"9.0.117", `SSLEnabled="true"><UpgradeProtocol className="org.apache.coyote.http2.Http2Protocol"/></Connector><x `, "https-jsse-nio", "", true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := connector(t, tt.version, `<Connector port="8080" `+tt.attributes+`/>`)
			require.Equal(t, tt.protocol, c.Protocol)
			require.Equal(t, tt.tls, c.TLS)
			require.Equal(t, tt.http2, c.HTTP2)
			if tt.address == "" {
				require.False(t, c.Address.IsValid())
			} else {
				require.Equal(t, netip.MustParseAddr(tt.address), c.Address)
			}
		})
	}
}

func TestPorts(t *testing.T) {
	tests := map[string]struct {
		version, server, attributes string
		port                        int // -1: no connector
	}{
		"plain":                        {"9.0.117", ``, `port="8080"`, 8080},
		"offset":                       {"9.0.117", `portOffset="100"`, `port="8080"`, 8180},
		"no offset before 9.0.13":      {"9.0.12", `portOffset="100"`, `port="8080"`, 8080},
		"no offset before 8.5.76":      {"8.5.75", `portOffset="100"`, `port="8080"`, 8080},
		"negative offset":              {"9.0.117", `portOffset="-5"`, `port="8080"`, 8080},
		"chosen by the system":         {"9.0.117", `portOffset="100"`, `port="0"`, 0},
		"without a port":               {"9.0.117", ``, ``, -1},
		"switched off":                 {"9.0.117", ``, `port="-1"`, -1},
		"no number":                    {"9.0.117", ``, `port="${http.port}"`, -1},
		"a socket in the file system":  {"9.0.117", ``, `port="8080" unixDomainSocketPath="/run/t.sock"`, -1},
		"the sum is no port any more":  {"9.0.117", `portOffset="60000"`, `port="8080"`, 0},
		"the offset may be a property": {"9.0.117", `portOffset="${off:-3}"`, `port="8080"`, 8083},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := load(t, tt.version, `<Server port="8005" `+tt.server+`><Service><Connector `+tt.attributes+`/></Service></Server>`)
			require.NoError(t, err)
			if tt.port < 0 {
				require.Empty(t, s.Connectors)
				return
			}
			require.Len(t, s.Connectors, 1)
			require.EqualValues(t, tt.port, s.Connectors[0].Port)
		})
	}
}

func TestExecutors(t *testing.T) {
	tests := map[string]struct {
		version, inside string
		executor        string
		threads, spare  int
		virtual         bool
		prefix          string
		missing         int
	}{
		"own pool":      {"9.0.117", `<Connector port="1" maxThreads="3"/>`, "", 3, 3, false, "", 0},
		"shared":        {"9.0.117", `<Executor name="a" maxThreads="9" minSpareThreads="2"/><Connector port="1" executor="a" maxThreads="3"/>`, "a", 9, 2, false, "tomcat-exec-", 0},
		"its defaults":  {"9.0.117", `<Executor name="a" namePrefix="x-"/><Connector port="1" executor="a"/>`, "a", 200, 25, false, "x-", 0},
		"too late":      {"9.0.117", `<Connector port="1" executor="a" maxThreads="3"/><Executor name="a" maxThreads="9"/>`, "", 3, 3, false, "", 1},
		"of no name":    {"9.0.117", `<Connector port="1" executor="b" maxThreads="3"/>`, "", 3, 3, false, "", 1},
		"the first one": {"9.0.117", `<Executor name="a" maxThreads="9"/><Executor name="a" maxThreads="8"/><Connector port="1" executor="a"/>`, "a", 9, 25, false, "tomcat-exec-", 0},
		"virtual": {
			"10.1.59", `<Executor name="v" className="org.apache.catalina.core.StandardVirtualThreadExecutor"/><Connector port="1" executor="v" maxThreads="3"/>`,
			"v", unknown, unknown, true, "tomcat-exec-", 0,
		},
		"somebody's own": {
			"10.1.59", `<Executor name="v" className="com.example.Executor" maxThreads="4"/><Connector port="1" executor="v" maxThreads="3"/>`,
			"v", unknown, unknown, false, "tomcat-exec-", 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := load(t, tt.version, `<Server><Service>`+tt.inside+`</Service></Server>`)
			require.NoError(t, err)
			require.Len(t, s.Connectors, 1)
			c := s.Connectors[0]
			require.Equal(t, tt.executor, c.Executor)
			require.Equal(t, tt.prefix, c.NamePrefix)
			require.Equal(t, tt.threads, number(c.MaxThreads))
			require.Equal(t, tt.spare, number(c.MinSpareThreads))
			require.Equal(t, tt.virtual, c.VirtualThreads != nil && c.VirtualThreads.Value)
			require.Len(t, s.Unavailable, tt.missing)
		})
	}
}

func TestQueueSize(t *testing.T) {
	const inside = `<Connector port="1" maxQueueSize="9"/>`
	require.Equal(t, 9, number(connector(t, "9.0.90", inside).MaxQueue))
	require.Equal(t, unknown, number(connector(t, "9.0.89", inside).MaxQueue))
	require.Equal(t, 9, number(connector(t, "11.0.0-M21", inside).MaxQueue))
	require.Equal(t, unknown, number(connector(t, "11.0.0-M20", inside).MaxQueue))
	shared := connector(t, "8.5.0", `<Executor name="a" maxQueueSize="4"/><Connector port="1" executor="a"/>`)
	require.Equal(t, 4, number(shared.MaxQueue))
	require.Equal(t, "conf/server.xml line 3, Executor a", shared.MaxQueue.Source)
}
