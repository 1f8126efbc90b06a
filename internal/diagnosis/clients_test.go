package diagnosis

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestVerdictCountsClients(t *testing.T) {
	v := model.Verdict{Status: model.StatusLosing, Summary: "5,240 packets were dropped."}
	c := &model.Clients{Observed: time.Minute, Waiting: 3}
	c.Outcomes[model.ClientGaveUp], c.Outcomes[model.ClientDelayed], c.Outcomes[model.ClientConnected] = 1707, 312, 8000
	c.Delays.Count, c.Delays.Sum = 312, 780
	got := WithClients(v, c)
	require.Equal(t, "1,707 clients gave up, 312 clients were let in late, after 2.5 s on average in the last 60 s; "+
		"3 clients still try to get in. 5,240 packets were dropped.", got.Summary)
	require.Empty(t, got.Findings)

	require.Equal(t, v.Summary, WithClients(v, &model.Clients{}).Summary, "nobody was turned away")
	require.Equal(t, "1 client still tries to get in. 5,240 packets were dropped.", WithClients(v, &model.Clients{Waiting: 1}).Summary)
	v.Status = model.StatusOK
	require.Equal(t, v.Summary, WithClients(v, c).Summary, "what the verdict does not speak of is in the numbers")
}

func TestFloodAndBalancerAreFindings(t *testing.T) {
	c := &model.Clients{
		Flood:    &model.ClientFlood{Attempts: 5000, Sources: 4900, Period: 10 * time.Second},
		Balancer: &model.ClientSource{Addr: netip.MustParseAddr("10.0.3.7"), Clients: 900},
	}
	before := model.Verdict{Findings: make([]model.Finding, 0, 8)}
	v := WithClients(before, c)
	require.Len(t, v.Findings, 1, "a load balancer is worth a word only where its clients are turned away")
	require.Equal(t, "syn_flood", v.Findings[0].Code)
	require.Contains(t, v.Findings[0].Evidence, "5,000 single SYNs from about 4,900 addresses")
	c.Outcomes[model.ClientStalled] = 1
	v = WithClients(before, c)
	require.Equal(t, "one_source", v.Findings[1].Code)
	require.Contains(t, v.Findings[1].Evidence, "10.0.3.7")
	require.Empty(t, before.Findings[:1][0].Code, "the verdict that came in is not changed")
}
