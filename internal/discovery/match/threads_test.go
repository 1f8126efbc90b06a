package match

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// threads repeats a name: threads("http-nio-8080-e*10 http-nio-8080-A").
func threads(list string) Pools {
	var names []string
	for _, word := range strings.Fields(list) {
		name, times, found := strings.Cut(word, "*")
		n := 1
		if found {
			n = int(PortOf(times))
		}
		for range n {
			names = append(names, name)
		}
	}
	return Threads(slices.Values(names))
}

// The names are those of Tomcat 8.5.100, 9.0.117, 10.1.59 and 11.0.24 on
// JDK 17 and 25, as the kernel kept them.
func TestThreads(t *testing.T) {
	tests := map[string]struct {
		names    string
		port     uint16
		workers  int
		protocol string
		unknown  bool
	}{
		"nio":                    {"http-nio-8080-e*10 http-nio-8080-A http-nio-8080-P", 8080, 10, "http-nio", false},
		"nio of 8.5":             {"http-nio-8080-e*10 http-nio-8080-A*2 http-nio-8080-P", 8080, 10, "http-nio", false},
		"two pollers of 8.5":     {"http-nio-8080-e*10 http-nio-8080-A*2 http-nio-8080-C*2", 8080, 10, "http-nio", false},
		"block poller of 9.0.20": {"http-nio-8080-e*10 http-nio-8080-A http-nio-8080-C http-nio-8080-B", 8080, 10, "http-nio", false},
		"short port":             {"http-nio-80-exe*10 http-nio-80-Acc http-nio-80-Asy http-nio-80-Pol", 80, 10, "http-nio", false},
		"the role is cut off":    {"http-nio-18080-*12", 18080, 10, "http-nio", false},
		"nio2":                   {"http-nio2-8081-*10", 8081, 10, "http-nio2", false},
		"nio2 without the dash":  {"http-nio2-18081*10", 18081, 10, "http-nio2", false},
		"ajp":                    {"ajp-nio-8009-ex*10 ajp-nio-8009-Ac ajp-nio-8009-Po", 8009, 10, "ajp-nio", false},
		"apr":                    {"http-apr-8080-e*10 http-apr-8080-A http-apr-8080-P", 8080, 10, "http-apr", false},
		"shared executor":        {"http-nio-8082-A http-nio-8082-P tomcat-exec-1 tomcat-exec-2", 8082, 0, "http-nio", true},
		"virtual threads":        {"http-nio-8082-A http-nio-8082-P", 8082, 0, "http-nio", true},
		"another port":           {"http-nio-8080-e*10", 8081, 0, "", true},
		"port 0":                 {"https-jsse-nio-*12", 0, 0, "", true},
		"the address comes first": {
			"http-nio-127.0.*12 http-nio-0:0:0:*2 ajp-nio-127.0.0*12", 8080, 0, "", true,
		},
		"port chosen by the system": {"http-nio-auto-1*12", 43567, 0, "", true},
		"no port, but a number":     {"http-nio-99999-", 34463, 0, "", true},
		"others":                    {"http-client-1 https- ajp http-nio java qtp-8080-1 http-outgoing-8 https-openssl", 8080, 0, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			workers, protocol, ok := threads(tt.names).For(tt.port)
			require.Equal(t, !tt.unknown, ok)
			require.Equal(t, tt.workers, workers)
			require.Equal(t, tt.protocol, protocol)
		})
	}
}

func TestThreadsWithoutPort(t *testing.T) {
	all := threads("https-jsse-nio-*12 http-nio-127.0.*14 https-openssl-n*12 http-nio-auto-1*3 http-nio-8080-e java*7").All()
	require.Equal(t, []Pool{
		{Protocol: "http-nio", Unknown: 3},
		{Protocol: "http-nio", Address: "127.0.", Unknown: 14},
		{Protocol: "https-jsse-nio", Unknown: 12},
		{Protocol: "https-openssl", Unknown: 12},
		{Protocol: "http-nio", Port: 8080, Workers: 1},
	}, all)
	require.Equal(t, 10, all[2].Count(2))
	require.Equal(t, 0, all[0].Count(5), "a pool cannot have fewer than no workers")
}

func TestNamed(t *testing.T) {
	p := threads("tomcat-exec-1 tomcat-exec-25 catalina-exec-1 catalina-exec-2 my-very-long-ex*30 tomcat-execu")
	require.Equal(t, 2, p.Named("tomcat-exec-"))
	require.Equal(t, 2, p.Named("catalina-exec-"))
	require.Equal(t, 30, p.Named("my-very-long-executor-"))
	require.Zero(t, p.Named("other-"))
	p = Threads(slices.Values([]string{"JDWP Transport ", "JDWP Event Help", "JDWP Command Re"})) // of JDK 21, a debugger is connected
	require.Equal(t, 1, p.Named(debuggerReads))
}

func FuzzThreads(f *testing.F) {
	m := mutate.Into(f)
	for _, seed := range []string{"http-nio-8080-e", "https-jsse-nio-", "http-nio2-18081", "http-nio-127.0.", "ajp-nio-auto-1", "tomcat-exec-1"} {
		m.Add(seed, uint16(8080))
	}
	m.Fuzz(func(t *testing.T, name string, port uint16) {
		p := Threads(slices.Values([]string{name, name}))
		workers, protocol, ok := p.For(port)
		require.LessOrEqual(t, workers, 2)
		require.Equal(t, ok, workers > 0)
		require.False(t, ok && protocol == "")
	})
}
