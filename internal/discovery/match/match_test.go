package match

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// configured makes connectors of "port [address] [tls|ajp|exec|virtual]", each
// with maxConnections = its place in the list, from 1.
func configured(list ...string) []catalina.Connector {
	out := make([]catalina.Connector, len(list))
	for i, text := range list {
		c := &out[i]
		c.Server, c.Scheme, c.Endpoint, c.Protocol = model.ServerTomcat().Name, "http", "nio", "http-nio"
		c.MaxConnections = &model.Setting[int]{Value: i + 1}
		words := strings.Fields(text)
		c.Port = PortOf(words[0])
		for _, word := range words[1:] {
			switch word {
			case "tls":
				c.TLS, c.Protocol = true, "https-jsse-nio"
			case "ajp":
				c.Scheme, c.Protocol = "ajp", "ajp-nio"
			case "exec":
				c.NamePrefix = "tomcat-exec-"
			case "virtual":
				c.VirtualThreads = &model.Setting[bool]{Value: true}
			default:
				c.Address = netip.MustParseAddr(word)
			}
		}
	}
	return out
}

// sockets makes listening sockets of "address:port" or "port".
func sockets(list string) []Listening {
	var out []Listening
	for _, text := range strings.Fields(list) {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			at = netip.AddrPortFrom(netip.IPv6Unspecified(), PortOf(text))
		}
		out = append(out, Listening{Port: at.Port(), Address: at.Addr()})
	}
	return out
}

// TestMatch: "port=server/number of the connector/pool", "-" for what is not known.
func TestMatch(t *testing.T) {
	version, err := catalina.ParseVersion("10.1.59")
	require.NoError(t, err)
	tests := map[string]struct {
		connectors []string
		ports      string
		threads    string
		want       string
		undecided  bool
	}{
		"one":                           {[]string{"8080"}, "8080", "http-nio-8080-e*10 http-nio-8080-A", "8080=tomcat/1/10", false},
		"and others":                    {[]string{"8080", "8081"}, "8080 8081 8005", "http-nio-8080-e*10", "8005=jvm/-/- 8080=tomcat/1/10 8081=tomcat/2/-", false},
		"by address":                    {[]string{"8080 127.0.0.1", "8080 10.0.0.1"}, "10.0.0.1:8080", "", "8080=tomcat/2/-", false},
		"both addresses":                {[]string{"8080 127.0.0.1", "8080 10.0.0.1"}, "127.0.0.1:8080 [::ffff:10.0.0.1]:8080", "", "8080=tomcat/1/- 8080=tomcat/2/-", false},
		"one address and all others":    {[]string{"8080 127.0.0.1", "8080"}, "8080 127.0.0.1:8080", "", "8080=tomcat/1/- 8080=tomcat/2/-", false},
		"mapped address":                {[]string{"8080 127.0.0.1", "8080 10.0.0.1"}, "[::ffff:10.0.0.1]:8080", "", "8080=tomcat/2/-", false},
		"bound to all":                  {[]string{"8080 127.0.0.1", "8080"}, "8080", "", "8080=tomcat/2/-", false},
		"of another address":            {[]string{"8080 127.0.0.1"}, "10.0.0.1:8080", "", "8080=tomcat/1/-", false},
		"five digits":                   {[]string{"18080"}, "18080", "http-nio-18080-*12", "18080=tomcat/1/10", false},
		"an address in the name":        {[]string{"8080 127.0.0.1"}, "127.0.0.1:8080", "http-nio-127.0.*12", "8080=tomcat/1/10", false},
		"IPv6 in the name":              {[]string{"8080 ::1"}, "[::1]:8080", "http-nio-0:0:0:*12", "8080=tomcat/1/10", false},
		"another address in the name":   {[]string{"8080 10.0.0.1"}, "10.0.0.1:8080", "http-nio-127.0.*12", "8080=tomcat/1/-", false},
		"two that share an address":     {[]string{"8080 127.0.0.1", "8081 127.0.0.1"}, "127.0.0.1:8080 127.0.0.1:8081", "http-nio-127.0.*24", "8080=tomcat/1/- 8081=tomcat/2/-", false},
		"TLS":                           {[]string{"8080", "8443 tls"}, "8080 8443", "http-nio-8080-e*10 https-jsse-nio-*14", "8080=tomcat/1/10 8443=tomcat/2/12", false},
		"two with TLS":                  {[]string{"8443 tls", "9443 tls"}, "8443 9443", "https-jsse-nio-*24", "8443=tomcat/1/- 9443=tomcat/2/-", false},
		"OpenSSL":                       {[]string{"8443 tls"}, "8443", "https-openssl-n*12", "8443=tomcat/1/10", false},
		"OpenSSL by Java's FFM":         {[]string{"8443 tls"}, "8443", "https-opensslff*12", "8443=tomcat/1/10", false},
		"AJP and HTTP on one address":   {[]string{"8080 127.0.0.1", "8009 127.0.0.1 ajp"}, "127.0.0.1:8080 127.0.0.1:8009", "http-nio-127.0.*12 ajp-nio-127.0.0*7", "8009=tomcat/2/5 8080=tomcat/1/10", false},
		"shared executor":               {[]string{"8080 exec"}, "8080", "http-nio-8080-A http-nio-8080-P tomcat-exec-1 tomcat-exec-2", "8080=tomcat/1/2", false},
		"shared executor, not running":  {[]string{"8080 exec"}, "8080", "http-nio-8080-A", "8080=tomcat/1/-", false},
		"virtual threads":               {[]string{"8080 virtual"}, "8080", "http-nio-8080-A http-nio-8080-P", "8080=tomcat/1/-", false},
		"port 0":                        {[]string{"0"}, "43567", "http-nio-auto-1*12", "43567=tomcat/1/10", false},
		"port 0 beside a known one":     {[]string{"8081", "0"}, "8081 43567", "", "8081=tomcat/1/- 43567=tomcat/2/-", false},
		"port 0 and a stranger":         {[]string{"0"}, "43567 9010", "http-nio-auto-1*12", "9010=jvm/-/- 43567=jvm/-/-", true},
		"two with port 0":               {[]string{"0", "0"}, "43567", "", "43567=jvm/-/-", true},
		"unknown port, known threads":   {[]string{"0"}, "8080 9010", "http-nio-8080-e*3", "8080=tomcat/1/3 9010=jvm/-/-", false},
		"threads alone":                 {nil, "8080 9010", "http-nio-8080-e*3", "8080=tomcat/-/3 9010=jvm/-/-", false},
		"threads without a port":        {nil, "8443", "https-jsse-nio-*12", "8443=tomcat/-/10", false},
		"threads of one of two":         {nil, "8443 9010", "https-jsse-nio-*12", "8443=jvm/-/- 9010=jvm/-/-", false},
		"threads of the bound address":  {nil, "127.0.0.1:8080 9010", "http-nio-127.0.*12", "8080=tomcat/-/10 9010=jvm/-/-", false},
		"not configured, but its name":  {[]string{"8080"}, "8080 8081", "http-nio-8081-e*3", "8080=tomcat/1/- 8081=tomcat/-/3", false},
		"HTTPS made by the application": {[]string{"8080"}, "8080 8443", "http-nio-8080-e*10 https-jsse-nio-*12", "8080=tomcat/1/10 8443=tomcat/-/10", false},
		"and a management port":         {[]string{"8080"}, "8080 8443 8081", "http-nio-8080-e*10 http-nio-8081-e*3 https-jsse-nio-*12", "8080=tomcat/1/10 8081=tomcat/-/3 8443=tomcat/-/10", false},
		"and JMX's, which it may be":    {[]string{"8080"}, "8080 8443 9010", "http-nio-8080-e*10 https-jsse-nio-*12", "8080=tomcat/1/10 8443=jvm/-/- 9010=jvm/-/-", false},
		"HTTPS beside five digits":      {[]string{"18080"}, "18080 8443", "http-nio-18080-*12 https-jsse-nio-*12", "8443=tomcat/-/10 18080=tomcat/1/10", false},
		"HTTPS may be the configured":   {[]string{"8080", "8444 tls"}, "8080 8443", "http-nio-8080-e*10 https-jsse-nio-*12", "8080=tomcat/1/10 8443=jvm/-/-", false},
		"a shutdown port is no mystery": {[]string{"8080", "8443 tls"}, "8080 8005", "https-jsse-nio-*12", "8005=jvm/-/- 8080=tomcat/1/-", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &Found{Server: model.ServerJVM().Name, Connectors: configured(tt.connectors...), Version: version}
			got, undecided := Match(f, sockets(tt.ports), threads(tt.threads), 2)
			var words []string
			for _, at := range slices.SortedFunc(maps.Keys(got), byPort) {
				c := got[at]
				number, pool := "-", "-"
				if c.MaxConnections != nil {
					number = strconv.Itoa(c.MaxConnections.Value)
				}
				if c.PoolThreads != nil {
					pool = strconv.Itoa(*c.PoolThreads)
				}
				words = append(words, strconv.Itoa(int(at.Port()))+"="+c.Server+"/"+number+"/"+pool)
			}
			require.Equal(t, tt.want, strings.Join(words, " "))
			require.Equal(t, tt.undecided, len(undecided) == 1)
		})
	}
}

func byPort(a, b netip.AddrPort) int {
	return cmp.Or(cmp.Compare(a.Port(), b.Port()), a.Addr().Compare(b.Addr()))
}

// Ports that the JVM's own options name are no candidates for a connector on a
// port that the system chose.
func TestJVMPortsAreNoConnectors(t *testing.T) {
	f := &Found{Server: model.ServerJVM().Name, Connectors: configured("0"), JVMPorts: map[uint16]bool{5005: true, 9010: true, 9011: true}}
	got, undecided := Match(f, sockets("5005 9010 9011 43567"), threads("http-nio-auto-1*12"), 2)
	require.Empty(t, undecided)
	require.Equal(t, model.ServerTomcat().Name, onPort(t, got, 43567).Server)
	for _, port := range []uint16{5005, 9010, 9011} {
		require.Equal(t, model.ServerJVM().Name, onPort(t, got, port).Server)
		require.Nil(t, onPort(t, got, port).MaxConnections)
	}
}

// A plain management port in addition to HTTPS: its threads, and its own ssl.enabled.
func TestManagementPortBesideHTTPS(t *testing.T) {
	f := &Found{Server: model.ServerJVM().Name, Connectors: configured("8443 tls", "8081 tls")}
	got, _ := Match(f, sockets("8443 8081"), threads("https-jsse-nio-*12 http-nio-8081-e*4"), 2)
	require.False(t, onPort(t, got, 8081).TLS, "its threads are named http")
	require.True(t, onPort(t, got, 8443).TLS)
}

func TestProtocolFromThreads(t *testing.T) {
	f := &Found{Server: model.ServerJVM().Name, Connectors: configured("8080", "8443")}
	got, _ := Match(f, sockets("8080 8443"), threads("http-apr-8080-e https-jsse-nio-"), 2)
	require.Equal(t, "http-apr", onPort(t, got, 8080).Protocol, "HTTP/1.1 may mean APR")
	require.False(t, onPort(t, got, 8080).TLS)
	got, _ = Match(f, sockets("8080 8443"), threads("https-nio-8443-"), 2)
	require.True(t, onPort(t, got, 8443).TLS, "the threads know better")
}

// Whether the only connector speaks TLS may be in what could not be read; its threads' name says it, without the port.
func TestTLSFromThreadsWithoutAPort(t *testing.T) {
	f := &Found{Server: model.ServerJVM().Name, Connectors: configured("8443")}
	for i := range f.Connectors {
		f.Connectors[i].Scheme = "http"
	}
	got, _ := Match(f, sockets("8443"), threads("https-jsse-nio-*2"), 2)
	require.True(t, onPort(t, got, 8443).TLS)
	require.Equal(t, "https-jsse-nio", onPort(t, got, 8443).Protocol)
	got, _ = Match(f, sockets("8443"), threads("https-jsse-nio-*2 http-nio-8443-A"), 2)
	require.False(t, onPort(t, got, 8443).TLS, "they are another's")
	f.Connectors = append(f.Connectors, configured("9443")...)
	got, _ = Match(f, sockets("8443 9443"), threads("https-jsse-nio-*2"), 2)
	require.False(t, onPort(t, got, 8443).TLS, "whose they are is not known")
}

func TestEffectiveBacklog(t *testing.T) {
	set := func(n int) *model.Setting[int] {
		return &model.Setting[int]{Value: n, Kind: model.SourceFile, Source: "x", Note: "n"}
	}
	tests := map[string]struct {
		configured *model.Setting[int]
		sendQ      int
		value      int
		kind       model.SourceKind
		note       string
	}{
		"as configured": {set(100), 100, 100, model.SourceFile, "n"},
		"clamped":       {set(5000), 128, 5000, model.SourceFile, "n; in force is 128: held down by net.core.somaxconn"},
		"raised":        {set(100), 300, 100, model.SourceFile, "n; in force is 300: set by code, or changed since"},
		"unknown":       {nil, 300, 300, model.SourceKernel, "in force; what is configured is not known"},
		"kernel silent": {set(100), 0, 100, model.SourceFile, "n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Effective(tt.configured, tt.sendQ)
			require.Equal(t, tt.value, got.Value)
			require.Equal(t, tt.kind, got.Kind)
			require.True(t, strings.HasPrefix(got.Note, tt.note), got.Note)
			if tt.configured != nil {
				require.Equal(t, "n", tt.configured.Note, "what is remembered stays")
			}
		})
	}
	require.Nil(t, Effective(nil, 0))
}

func TestJavaAddress(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "::1": "0:0:0:0:0:0:0:1", "2001:db8::ff": "2001:db8:0:0:0:0:0:ff",
	} {
		require.Equal(t, want, javaAddress(netip.MustParseAddr(text)))
	}
	require.Equal(t, "invalid IP", javaAddress(netip.Addr{}))
}

// onPort is the connector of the only socket on that port.
func onPort(t testing.TB, connectors Connectors, port uint16) *model.Connector {
	t.Helper()
	at := connectors.OnPort(port)
	require.Len(t, at, 1)
	return connectors[at[0]]
}

// A process with thousands of listeners and as many threads that look like a
// Tomcat's costs about as much as it has listeners.
func TestMatchManyListeners(t *testing.T) {
	const n = 5_000
	names := make([]string, 0, 2*n)
	ports := make([]Listening, 0, n)
	for i := range n {
		names = append(names, "http-nio-"+strconv.Itoa(10_000+i)+"-", "http-nio-10.0."+strconv.Itoa(i%10)+"-"+strconv.Itoa(i))
		ports = append(ports, Listening{Port: uint16(10_000 + i), Address: netip.AddrFrom4([4]byte{10, 0, byte(i % 10), 1})})
	}
	f := &Found{Server: model.ServerJVM().Name, Connectors: configured(slices.Repeat([]string{"0 10.0.3.1"}, 256)...)}
	pools := Threads(slices.Values(names))
	require.Len(t, pools.All(), maxPools)
	connectors, _ := Match(f, ports, pools, 2)
	require.Len(t, connectors, n)
	allocs := testing.AllocsPerRun(1, func() { Match(f, ports, pools, 2) })
	require.Less(t, allocs, float64(60*n), "allocations grow faster than the listeners")
}

// The other port of a shared Executor may not be looked at: it counts all the same.
func TestMatchCountsTheUsersOfAnExecutor(t *testing.T) {
	list := configured("8080", "8443 tls", "8009 ajp", "8081")
	for i := range 3 {
		list[i].Executor = "pool"
	}
	f := &Found{Server: "jvm", Connectors: list}
	got, _ := Match(f, sockets("8080 8081"), threads("pool-1 pool-2"), 2)
	require.Equal(t, 3, got[sockets("8080")[0].At()].ExecutorUsers)
	require.Zero(t, got[sockets("8081")[0].At()].ExecutorUsers)
}
