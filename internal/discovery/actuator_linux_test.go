package discovery

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// actuatorStub answers like Spring Boot's Actuator for connectors of those
// names: every figure is its name's length.
type actuatorStub struct {
	names    []string
	status   int // 0: 200
	requests atomic.Int32
	slow     chan struct{}
}

func (a *actuatorStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	if a.slow != nil {
		select {
		case <-a.slow:
		case <-r.Context().Done():
		}
	}
	if a.status != 0 {
		w.Header().Set("Location", "/login")
		w.WriteHeader(a.status)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/actuator/metrics/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = fmt.Fprintf(w, `{"name":%q,"measurements":[{"statistic":"VALUE","value":%d.0}],"availableTags":[{"tag":"name","values":["%s"]}]}`,
		name, len(name), strings.Join(a.names, `","`))
}

// bootFake is a Spring Boot process with a management port.
func bootFake(t *testing.T, management int) *server {
	t.Helper()
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), fmt.Sprintf("management.server.port=%d\nserver.tomcat.threads.max=7\n", management))
	return startFake(t, fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir})
}

func portOfURL(t *testing.T, address string) uint16 {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return match.PortOf(u.Port())
}

func TestActuatorOnItsOwnPort(t *testing.T) {
	stub := &actuatorStub{names: []string{"http-nio-8080"}}
	management := httptest.NewServer(stub)
	defer management.Close()
	port := portOfURL(t, management.URL)
	s := bootFake(t, int(port))
	clock := newClock(0)
	d := inChildren(t, WithClock(clock.now))
	for range 3 {
		connectors, unavailable := d.Discover(t.Context(), s.pid, s.start, ports(8080, port))
		require.Empty(t, unavailable)
		c := connectorOn(t, connectors, 8080)
		require.Equal(t, len("tomcat.threads.busy"), *c.BusyThreads)
		require.Equal(t, len("tomcat.connections.current"), *c.CurrentConnections)
		require.Equal(t, model.Setting[int]{
			Value: len("tomcat.threads.config.max"), Kind: model.SourceActuator, Source: "Actuator",
			Note: "configured is 7 (application.properties in app.jar)",
		}, *c.MaxThreads)
		require.Equal(t, len("tomcat.connections.config.max"), c.MaxConnections.Value)
		require.Nil(t, connectorOn(t, connectors, port).BusyThreads)
	}
	require.EqualValues(t, 5, stub.requests.Load(), "once in a while is enough")

	clock.move(actuatorEvery)
	d.Discover(t.Context(), s.pid, s.start, ports(8080, port))
	require.Eventually(t, func() bool { return stub.requests.Load() == 10 }, time.Minute, time.Millisecond, "then it is asked again, beside")
}

// With --port only one port of the process is known; its Actuator is asked where the
// process itself listens, again when the figures are old, and nobody else is.
func TestActuatorOnAPortThatIsNotWatched(t *testing.T) {
	stub := &actuatorStub{names: []string{"http-nio-8080"}}
	management := httptest.NewUnstartedServer(stub)
	connected := new(atomic.Int32)
	management.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connected.Add(1)
		}
	}
	listener, err := management.Listener.(*net.TCPListener).File()
	require.NoError(t, err)
	defer listener.Close()
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), fmt.Sprintf("management.server.port=%d\nserver.http2.enabled=true\n", management.Listener.Addr().(*net.TCPAddr).Port))
	line := []string{"java", "-jar", "app.jar"}
	s, stranger := startFake(t, fake{args: line, Dir: dir, held: []*os.File{listener}}), startFake(t, fake{args: line, Dir: dir})
	require.NoError(t, syscall.SetNonblock(int(listener.Fd()), true)) // os/exec has made it block
	management.Start()
	defer management.Close()

	clock := newClock(0)
	d := inChildren(t, WithClock(clock.now))
	busy := func(s *server) *int {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel() // as the observer does
		connectors, unavailable := d.Discover(ctx, s.pid, s.start, ports(8080))
		require.Empty(t, unavailable)
		require.True(t, connectorOn(t, connectors, 8080).HTTP2)
		return connectorOn(t, connectors, 8080).BusyThreads
	}
	require.Nil(t, busy(stranger))
	require.Zero(t, connected.Load(), "the port is another process's")
	require.Equal(t, len("tomcat.threads.busy"), *busy(s))
	clock.move(actuatorEvery)
	require.NotNil(t, busy(s))
	require.Eventually(t, func() bool { return stub.requests.Load() == 10 }, time.Minute, time.Millisecond, "it is asked again, beside")
	require.Never(t, func() bool { return busy(s) == nil }, 100*time.Millisecond, time.Millisecond)
}

// TestActuatorOnTheApplicationsPort: no request, unless it is asked for.
func TestActuatorOnTheApplicationsPort(t *testing.T) {
	stub := &actuatorStub{}
	app := httptest.NewServer(stub)
	defer app.Close()
	port := portOfURL(t, app.URL)
	stub.names = []string{fmt.Sprintf("http-nio-%d", port)}
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), fmt.Sprintf("server.port=%d\nmanagement.server.port=%d\n", port, port))
	s := startFake(t, fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir})

	connectors, _ := inChildren(t).Discover(t.Context(), s.pid, s.start, ports(port))
	require.Equal(t, "spring-boot", connectorOn(t, connectors, port).Framework)
	require.Zero(t, stub.requests.Load())

	connectors, _ = inChildren(t, withActuator(app.URL+"/actuator/")).Discover(t.Context(), s.pid, s.start, ports(port))
	require.NotNil(t, connectorOn(t, connectors, port).BusyThreads)
	require.Positive(t, stub.requests.Load())

	stub.requests.Store(0)
	inChildren(t, withActuator(app.URL+"/actuator/")).Discover(t.Context(), s.pid, s.start, ports(port+1))
	require.Zero(t, stub.requests.Load(), "it is another process's port")
}

func TestActuatorThatDoesNotAnswer(t *testing.T) {
	for name, stub := range map[string]*actuatorStub{
		"credentials": {status: http.StatusUnauthorized},
		"login page":  {status: http.StatusFound},
		"no metrics":  {status: http.StatusNotFound},
		"silence":     {slow: make(chan struct{})},
	} {
		t.Run(name, func(t *testing.T) {
			management := httptest.NewServer(stub)
			defer management.Close()
			if stub.slow != nil {
				defer close(stub.slow)
			}
			port := portOfURL(t, management.URL)
			s := bootFake(t, int(port))
			d := inChildren(t)
			for range 3 {
				connectors, unavailable := d.Discover(t.Context(), s.pid, s.start, ports(8080, port))
				require.Equal(t, 7, connectorOn(t, connectors, 8080).MaxThreads.Value)
				require.Nil(t, connectorOn(t, connectors, 8080).BusyThreads)
				require.Len(t, unavailable, 1)
				require.Contains(t, unavailable[0].How, "mbeanregistry")
			}
			require.EqualValues(t, 1, stub.requests.Load(), "nobody waits for it again")
		})
	}
}

// Sixty Actuators of one owner answer slowly: another's is asked as soon as one of them is done.
func TestActuatorsTakeTurns(t *testing.T) {
	var greedy, others atomic.Int32
	asked := make(chan int32, 1)
	stub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/greedy") {
			greedy.Add(1)
			<-r.Context().Done()
		} else if others.Add(1) == 1 {
			asked <- greedy.Load()
		}
	}))
	defer stub.Close()
	base, err := url.Parse(stub.URL)
	require.NoError(t, err)
	d := NewDiscoverer(hostfs.Real(t))
	ask := func(owner string) {
		m := &meters{base: stub.URL + "/" + owner, next: time.Unix(1, 0)} // it has answered before: nobody waits for it
		m.refresh(t.Context(), d, &door{namespace: callersNamespace, url: base}, m.base, owner)
	}
	for range 60 {
		ask("greedy")
	}
	require.Eventually(t, func() bool { return greedy.Load() == maxAsks }, time.Minute, time.Millisecond)
	ask("other")
	select {
	case before := <-asked:
		require.LessOrEqual(t, before, int32(3*maxAsks), "of 60")
	case <-time.After(time.Minute):
		require.Fail(t, "never asked")
	}
}

// TestActuatorInAnotherNamespace: the address is one of the process's network.
func TestActuatorInAnotherNamespace(t *testing.T) {
	ns := nettest.Namespace(t)
	stub := &actuatorStub{names: []string{"http-nio-8080"}}
	var inside *httptest.Server
	ns.Do(func() { inside = httptest.NewServer(stub) })
	defer inside.Close()
	base, err := url.Parse(inside.URL)
	require.NoError(t, err)
	client := actuatorClient(&door{namespace: ns.Path(), url: base})
	readings, err := askAll(t.Context(), client, inside.URL+"/actuator")
	require.NoError(t, err)
	require.Len(t, readings, 1)

	_, err = askAll(t.Context(), actuatorClient(&door{namespace: netns.Path("/proc", os.Getpid()), url: base}), inside.URL+"/actuator")
	require.Error(t, err)
}

func TestActuatorURL(t *testing.T) {
	listens := byPorts(map[uint16]string{80: "", 443: "", 8081: ""})
	for given, want := range map[string]string{
		"":                   "",
		"http://h/actuator/": "http://h/actuator",
		"https://h/actuator": "https://h/actuator",
		"http://h:8081":      "http://h:8081",
		"http://h:9":         "",
		"://":                "",
	} {
		d := inChildren(t, withActuator(given))
		require.Equal(t, want, d.actuatorOf(&entry{Request: examine.Request{PID: 1}}, listens).url(), given)
	}
}

func TestActuatorOfATarget(t *testing.T) {
	listens := byPorts(map[uint16]string{8080: ""})
	tests := map[string]struct {
		given []Actuator
		want  string
	}{
		"whoever listens on the port":   {[]Actuator{{URL: "http://h:9/a/", Port: 8080}}, "http://h:9/a"},
		"nobody listens on the port":    {[]Actuator{{URL: "http://h:8080/a", Port: 8081}}, ""},
		"the process":                   {[]Actuator{{URL: "http://h:9/a", PID: 7}}, "http://h:9/a"},
		"another process":               {[]Actuator{{URL: "http://h:8080/a", PID: 8}}, ""},
		"the port of the process":       {[]Actuator{{URL: "http://h:9/a", PID: 7, Port: 8080}}, "http://h:9/a"},
		"another port of the process":   {[]Actuator{{URL: "http://h:9/a", PID: 7, Port: 8081}}, ""},
		"the port of another process":   {[]Actuator{{URL: "http://h:9/a", PID: 8, Port: 8080}}, ""},
		"the one for all comes first":   {[]Actuator{{URL: "http://h:8080/a"}, {URL: "http://h:9/b", Port: 8080}}, "http://h:8080/a"},
		"the one for all is not theirs": {[]Actuator{{URL: "http://h:1/a"}, {URL: "http://h:9/b", Port: 8080}}, "http://h:9/b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := inChildren(t)
			d.SetActuators(tt.given)
			require.Equal(t, tt.want, d.actuatorOf(&entry{Request: examine.Request{PID: 7}, current: &examine.Examination{Found: match.Found{}}}, listens).url())
		})
	}
}

// The answers of the previous one are forgotten, and nobody waits for its next turn.
func TestAnotherActuatorIsAskedAtOnce(t *testing.T) {
	one, two := &actuatorStub{names: []string{"http-nio-8080"}}, &actuatorStub{status: http.StatusNotFound}
	first, second := httptest.NewServer(one), httptest.NewServer(two)
	defer first.Close()
	defer second.Close()
	s := bootFake(t, 1)
	d := inChildren(t)
	d.SetActuators([]Actuator{{URL: first.URL + "/actuator", Port: 8080}})
	connectors, _ := d.Discover(t.Context(), s.pid, s.start, ports(8080))
	require.NotNil(t, connectorOn(t, connectors, 8080).BusyThreads)

	d.SetActuators([]Actuator{{URL: second.URL + "/actuator", Port: 8080}})
	connectors, unavailable := d.Discover(t.Context(), s.pid, s.start, ports(8080))
	require.Nil(t, connectorOn(t, connectors, 8080).BusyThreads)
	require.Len(t, unavailable, 1)
	require.EqualValues(t, 1, two.requests.Load())

	d.SetActuators(nil)
	connectors, unavailable = d.Discover(t.Context(), s.pid, s.start, ports(8080))
	require.Nil(t, connectorOn(t, connectors, 8080).BusyThreads)
	require.Empty(t, unavailable)
}

func TestActuatorKeepsPasswords(t *testing.T) {
	management := httptest.NewServer(&actuatorStub{status: http.StatusForbidden})
	defer management.Close()
	base := strings.Replace(management.URL, "http://", "http://user:secret@", 1)
	_, err := askAll(t.Context(), http.DefaultClient, base)
	require.ErrorContains(t, err, "403")
	require.NotContains(t, err.Error(), "secret")
	management.Close()
	_, err = askAll(t.Context(), http.DefaultClient, base)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestActuatorNames(t *testing.T) {
	r := reading{name: "http-nio-auto-1-43567", busy: new(3)}
	one := byPorts(map[uint16]string{43567: model.ServerTomcat().Name, 9010: model.ServerJVM().Name})
	r.apply(one)
	require.Equal(t, 3, *connectorOn(t, one, 43567).BusyThreads)
	require.Nil(t, connectorOn(t, one, 9010).BusyThreads)
	two := byPorts(map[uint16]string{1: model.ServerTomcat().Name, 2: model.ServerTomcat().Name})
	r.apply(two)
	require.Nil(t, connectorOn(t, two, 1).BusyThreads)
	reading{name: "https-jsse-nio-2", busy: new(4)}.apply(two)
	require.Equal(t, 4, *connectorOn(t, two, 2).BusyThreads)
	reading{name: "", busy: new(4)}.apply(two)
	reading{name: "x-99999", busy: new(4)}.apply(two)
}

// TestActuatorNamesOnOnePort: of several connectors on one port each has its
// own figures.
func TestActuatorNamesOnOnePort(t *testing.T) {
	var sockets []match.Listening
	for _, address := range []string{"127.0.0.1", "::ffff:10.0.0.5", "::1", "::"} {
		sockets = append(sockets, match.Listening{Port: 8080, Address: netip.MustParseAddr(address)})
	}
	connectors := match.Connectors{}
	for _, l := range sockets {
		connectors[l.At()] = &model.Connector{Server: model.ServerTomcat().Name}
	}
	for i, name := range []string{"http-nio-127.0.0.1-8080", "http-nio-10.0.0.5-8080", "http-nio-0:0:0:0:0:0:0:1-8080", "http-nio-8080"} {
		reading{name: name, busy: &i}.apply(connectors)
	}
	for i, l := range sockets {
		require.Equal(t, i, *connectors[l.At()].BusyThreads, l)
	}
}

func FuzzMeter(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte(`{"measurements":[{"statistic":"VALUE","value":1.0}],"availableTags":[{"tag":"name","values":["http-nio-8080"]}]}`))
	m.Add([]byte(`{"measurements":[{"statistic":"VALUE","value":-1}]}`))
	m.Fuzz(func(t *testing.T, body []byte) {
		m, err := parseMeter(body)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(m.names()), maxConnectors)
		if v := m.value(); v != nil {
			require.GreaterOrEqual(t, *v, 0)
		}
	})
}

// What an answer says is repeated nowhere, however it is broken.
func TestActuatorIsNotQuoted(t *testing.T) {
	for name, says := range map[string]string{
		"status": "HTTP/1.1 TOPSECRET\r\n\r\n", "no HTTP": "TOPSECRET\r\n\r\n", "header": "HTTP/1.1 200 OK\r\nTOPSECRET\r\n\r\n",
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: TOPSECRET\r\n\r\n",
		"coding":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: TOPSECRET\r\n\r\n",
		"chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nTOPSECRET\r\n",
		"JSON":    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nTOPSECRET",
		"number":  "HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n{\"measurements\":[{\"value\":\"TOPSECRET\"}]}   ",
		"closed":  "",
		"cut off": "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nTOPSECRET",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Read(make([]byte, 4096))
					_, _ = io.WriteString(c, says)
					_ = c.Close()
				}
			}()
			base, err := url.Parse("http://" + l.Addr().String())
			require.NoError(t, err)
			d := &door{namespace: callersNamespace, local: true, url: base}
			_, err = askMeter(t.Context(), actuatorClient(d), base.String(), "a", "")
			require.Error(t, err)
			require.NotContains(t, err.Error(), "SECRET")
			require.True(t, strings.HasPrefix(err.Error(), "actuator: "), "%v", err)
			require.NotContains(t, err.Error(), "actuator: actuator")
		})
	}
}

// A packed answer is read to its bound, and is no larger for that.
func TestActuatorThatPacks(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 64 {
		_, err := z.Write(bytes.Repeat([]byte(" "), 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	require.NoError(t, err)
	d := &door{namespace: callersNamespace, local: true, url: base}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = askMeter(t.Context(), actuatorClient(d), base.String(), "a", "")
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
}
