package discovery

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestUnseenAsksActuator(t *testing.T) {
	stub := &actuatorStub{names: []string{"https-openssl-nio-127.0.0.1-8443"}}
	management := httptest.NewServer(stub)
	defer management.Close()
	port := portOfURL(t, management.URL)
	clock := newClock(0)
	d := inChildren(t, WithClock(clock.now), withActuator(management.URL+"/actuator/"))
	for range 3 { // asked once: the clock stands still
		connectors, unavailable := d.DiscoverUnseen(t.Context(), ports(8080, 8443, port))
		require.Empty(t, unavailable)
		require.Len(t, connectors, 1, "only what Actuator names is known to be Tomcat's")
		c := connectorOn(t, connectors, 8443)
		require.Equal(t, "tomcat", c.Server)
		require.Equal(t, "https-openssl-nio", c.Protocol)
		require.True(t, c.TLS)
		require.Equal(t, len("tomcat.threads.busy"), *c.BusyThreads)
		require.Equal(t, len("tomcat.connections.config.max"), c.MaxConnections.Value)
		require.Equal(t, model.SourceActuator, c.MaxConnections.Kind)
		require.Equal(t, 50, c.AcceptCount.Value)
		require.Equal(t, model.SourceKernel, c.AcceptCount.Kind)
	}
	require.Equal(t, int32(5), stub.requests.Load())

	d.SetActuators(nil)
	connectors, _ := d.DiscoverUnseen(t.Context(), ports(8443, port))
	require.Empty(t, connectors, "forgotten")
}

func TestUnseenIsNotAskedForOthers(t *testing.T) {
	stub := &actuatorStub{names: []string{"http-nio-8080"}}
	management := httptest.NewServer(stub)
	defer management.Close()
	port := portOfURL(t, management.URL)
	for name, tt := range map[string]struct {
		actuator Actuator
		ports    []match.Listening
	}{
		"nothing listens on its port": {Actuator{URL: management.URL + "/actuator"}, ports(8080)},
		"it is another process's":     {Actuator{URL: management.URL + "/actuator", PID: 1}, ports(8080, port)},
		"it is another port's":        {Actuator{URL: management.URL + "/actuator", Port: 8081}, ports(8080, port)},
	} {
		t.Run(name, func(t *testing.T) {
			d := inChildren(t)
			d.SetActuators([]Actuator{tt.actuator})
			connectors, unavailable := d.DiscoverUnseen(t.Context(), tt.ports)
			require.Empty(t, connectors)
			require.Empty(t, unavailable)
		})
	}
	require.Zero(t, stub.requests.Load())
}

func TestUnseenSaysWhyActuatorIsSilent(t *testing.T) {
	stub := &actuatorStub{status: http.StatusUnauthorized}
	management := httptest.NewServer(stub)
	defer management.Close()
	d := inChildren(t, withActuator(management.URL+"/actuator"))
	connectors, unavailable := d.DiscoverUnseen(t.Context(), ports(8080, portOfURL(t, management.URL)))
	require.Empty(t, connectors)
	require.Len(t, unavailable, 1)
	require.Contains(t, unavailable[0].Why, "401")
}
