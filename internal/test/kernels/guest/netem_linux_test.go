package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/plan"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// trip is a load in a namespace with a network between clients and server.
type trip struct {
	Server  demo.ServerOptions
	Clients int
	Connect time.Duration
	Request time.Duration
}

// roundTrip is what netem makes of loopback, half of it each way: long enough
// for all SYNs to be there before the first final ACK, on a slow machine too.
const roundTrip = 400 * time.Millisecond

// Across a network the final ACKs come after all the SYNs: the clients that a
// full queue turns away are connected by then, by their own account, and end in
// a read timeout where they would end in a connect timeout on one host.
func TestPlanAcrossANetwork(t *testing.T) {
	inGuest(t)
	for _, l := range []trip{
		{demo.ServerOptions{MaxThreads: 1, MaxConnections: 1, AcceptCount: 1, ServiceTime: 2 * time.Second}, 10, 900 * time.Millisecond, 3100 * time.Millisecond},
		{demo.ServerOptions{MaxThreads: 10, MaxConnections: 20, AcceptCount: 10, ServiceTime: time.Second}, 60, 900 * time.Millisecond, 3100 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d clients", l.Clients), func(t *testing.T) {
			ns := nettest.Namespace(t)
			ns.Do(func() { network(t, roundTrip, 0) })
			got, want := l.in(t, ns), l.plan(t)
			report(fmt.Sprintf("%d clients, round trip %v: served, connect, read timeouts", l.Clients, roundTrip),
				"%d, %d, %d; plan %d, %d, %d", got.Served, got.ConnectTimeout, got.ReadTimeout,
				want.Served, want.ConnectTimeout, want.ReadTimeout)
			most := 0.05 * float64(l.Clients)
			require.InDelta(t, want.Served, got.Served, most)
			require.InDelta(t, want.ConnectTimeout, got.ConnectTimeout, most)
			require.InDelta(t, want.ReadTimeout, got.ReadTimeout, most)
		})
	}
}

// lost is the share of packets that TestPlanAcrossALossyNetwork loses.
const lost = 0.1

// The plan knows a network's delay and none of its losses. Of clients that all
// have room and wait less than a repeated SYN takes, those get in whose SYN and
// SYN-ACK both arrive; a client that is in is served as planned.
func TestPlanAcrossALossyNetwork(t *testing.T) {
	inGuest(t)
	l := trip{
		demo.ServerOptions{MaxThreads: 400, MaxConnections: 400, AcceptCount: 400, ServiceTime: time.Second},
		300, 900 * time.Millisecond, time.Minute,
	}
	ns := nettest.Namespace(t)
	ns.Do(func() { network(t, roundTrip/4, lost) })
	got, want := l.in(t, ns), l.plan(t)
	report(fmt.Sprintf("%d clients, round trip %v, %.0f %% lost: served, connect, read timeouts", l.Clients, roundTrip/4, 100*lost),
		"%d, %d, %d; plan (without loss) %d, %d, %d", got.Served, got.ConnectTimeout, got.ReadTimeout,
		want.Served, want.ConnectTimeout, want.ReadTimeout)
	require.Equal(t, plan.Outcomes{Served: l.Clients}, want)
	in := float64(l.Clients) * (1 - lost) * (1 - lost)
	sigma := math.Sqrt(in * (1 - (1-lost)*(1-lost)))
	require.InDelta(t, in, got.Served+got.ReadTimeout, 5*sigma)
	require.InDelta(t, float64(l.Clients)-in, got.ConnectTimeout, 5*sigma)
	require.LessOrEqual(t, got.ReadTimeout, 3, "TCP repeats what is lost of an answer")
}

// network delays every packet on the loopback of the calling thread's namespace
// by half a round trip, and loses some.
func network(t *testing.T, roundTrip time.Duration, loss float32) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	attributes := netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	require.NoError(t, netlink.QdiscAdd(netlink.NewNetem(attributes, netlink.NetemQdiscAttrs{
		Latency: uint32((roundTrip / 2).Microseconds()), Loss: 100 * loss, Limit: 10_000,
	})))
}

// in runs server and clients in a process of their own within the namespace.
func (l trip) in(t *testing.T, ns *nettest.NS) (out plan.Outcomes) {
	t.Helper()
	load, err := json.Marshal(l)
	require.NoError(t, err)
	result := t.TempDir() + "/outcomes"
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := ns.Command(program, "-test.run", "^TestTripHere$")
	cmd.Env = append(os.Environ(), "TCPDIAG_TRIP="+string(load), "TCPDIAG_TRIP_RESULT="+result)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	bytes, err := os.ReadFile(result)
	require.NoError(t, err, "%s", text)
	require.NoError(t, json.Unmarshal(bytes, &out))
	return out
}

// TestTripHere is the part of TestPlanAcrossANetwork in the namespace.
func TestTripHere(t *testing.T) {
	var l trip
	if json.Unmarshal([]byte(os.Getenv("TCPDIAG_TRIP")), &l) != nil {
		t.Skip("a part of TestPlanAcrossANetwork")
	}
	ctx, stop := context.WithCancel(t.Context())
	l.Server.Address = "127.0.0.1:0"
	server, err := demo.Listen(ctx, l.Server)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	o, err := demo.Burst(ctx, demo.BurstOptions{
		Address: server.Address().String(), Clients: l.Clients, ConnectTimeout: l.Connect, RequestTimeout: l.Request,
	})
	require.NoError(t, err)
	stop()
	require.NoError(t, <-done)
	bytes, err := json.Marshal(plan.Outcomes{
		Served: o.Of(demo.OK), ConnectTimeout: o.Of(demo.ConnectTimeout), ReadTimeout: o.Of(demo.ReadTimeout),
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(os.Getenv("TCPDIAG_TRIP_RESULT"), bytes, 0o600))
}

func (l trip) plan(t *testing.T) plan.Outcomes {
	t.Helper()
	retries := plan.SynRetriesLinear
	if !exists("/proc/sys/net/ipv4/tcp_syn_linear_timeouts") {
		retries = plan.SynRetriesExponential
	}
	p, err := plan.New(plan.Input{
		Requests: l.Clients, ServiceTime: l.Server.ServiceTime, Threads: l.Server.MaxThreads,
		MaxConnections: l.Server.MaxConnections, AcceptCount: l.Server.AcceptCount,
		ClientTimeout: l.Request, ConnectTimeout: l.Connect, RoundTrip: roundTrip, Syncookies: true, SynRetries: retries,
	})
	require.NoError(t, err)
	return p.Outcomes
}
