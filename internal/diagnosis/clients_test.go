package diagnosis

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// said is the summary with these clients.
func said(v model.Verdict, c *model.Clients, packets uint64) string {
	l := &model.Listener{Verdict: v, Losses: &model.Losses{DroppedPackets: packets, Clients: c}}
	return withClients(time.Time{}, l, time.Minute, reading.DefaultThresholds()).Summary
}

func TestVerdictCountsClients(t *testing.T) {
	v := model.Verdict{Status: model.StatusLosing, Summary: "5,240 packets were dropped in the last 60 s."}
	c := &model.Clients{Observed: time.Minute, Waits: model.Waits{Shortest: 1010 * time.Millisecond, Longest: 7 * time.Second}}
	c.Outcomes[model.ClientGaveUp], c.Outcomes[model.ClientDelayed], c.Outcomes[model.ClientConnected] = 1707, 312, 8000
	c.Delays.Count, c.Delays.Sum = 312, 780
	require.Equal(t, "In the last 60 s 1,707 clients gave up connecting, 312 were let in after 1 to 7 s. 5,240 packets were dropped in the last 60 s.", said(v, c, 5240))

	c.Waiting, c.Observed = 3, 7*time.Second
	require.Equal(t, "In the last 7 s 1,707 clients gave up connecting, 312 were let in after 1 to 7 s, 3 are still trying. 5,240 packets were dropped in the last 60 s.", said(v, c, 5240))
	c.Waits = model.Waits{}
	require.Contains(t, said(v, c, 5240), "312 were let in after 2.5 s on average", "older recordings")

	require.Equal(t, v.Summary, said(v, &model.Clients{}, 5240), "nobody was turned away")
	require.Equal(t, "1 client is still trying to connect; "+v.Summary, said(v, &model.Clients{Waiting: 1, Observed: time.Minute}, 5240))
	some := &model.Clients{Waiting: 22, Observed: 8 * time.Second, Waits: model.Waits{Shortest: time.Second, Longest: 7 * time.Second}}
	some.Outcomes[model.ClientDelayed] = 31
	require.Equal(t, "22 clients are still trying to connect; in the last 8 s 31 others were let in after 1 to 7 s. "+v.Summary, said(v, some, 5240), "who is in trouble now comes first")
	refused := &model.Clients{Observed: time.Minute}
	refused.Outcomes[model.ClientRefused] = 5
	require.Equal(t, "In the last 60 s 5 clients were refused. Nothing listens.", said(model.Verdict{Status: model.StatusDown, Summary: "Nothing listens."}, refused, 0))
	v.Status = model.StatusOK
	require.Equal(t, v.Summary, said(v, c, 5240), "what the verdict does not speak of is in the numbers")
}

func TestSpan(t *testing.T) {
	for want, w := range map[string]model.Waits{
		"2.1 s":         {Shortest: 2 * time.Second, Longest: 2100 * time.Millisecond},
		"1 to 7 s":      {Shortest: time.Second, Longest: 7 * time.Second},
		"1 s":           {Shortest: time.Second, Longest: 1010 * time.Millisecond},
		"40 ms to 31 s": {Shortest: 40 * time.Millisecond, Longest: 31 * time.Second},
	} {
		require.Equal(t, want, Span(w))
	}
}

// Who waits for no answer, and of whom nothing is known, is in no such number, with TLS and without.
func TestClientsAmongWhomThoseTurnedAwayAre(t *testing.T) {
	c := &model.Clients{Observed: time.Minute}
	c.Outcomes = [model.NumClientOutcomes]uint64{model.ClientConnected: 25, model.ClientStalled: 40, model.ClientHalfOpen: 7, model.ClientUndecided: 1}
	require.Equal(t, "In the last 60 s 40 of 65 clients never got in", noAnswer(c))
	c.Answers = model.ClientAnswers{Known: true, Answered: 20, Checks: 5}
	require.Equal(t, "In the last 60 s 40 of 60 clients never got in", noAnswer(c))
	c.Answers = model.ClientAnswers{Unanswered: 5}
	require.Equal(t, "45 of 65 clients got no answer in the last 60 s: 40 never got in, 5 gave up waiting inside", noAnswer(c), "who is let in is counted once")
	c.Answers = model.ClientAnswers{Unanswered: 30, Closed: 30}
	require.Equal(t, "All 70 clients got no answer in the last 60 s: 40 never got in, 30 were closed by the server", noAnswer(c), "they were let in before")
}

// How long those had waited who were answered: a share is said of as many clients as have one in it, and none beyond what is
// measured, nor where the server's first byte is no answer.
func TestFirstBytes(t *testing.T) {
	said := func(known bool, within1s, within30s, of uint64) string {
		c := &model.Clients{}
		c.Answers.Known = known
		c.Responses = model.FirstResponses{Count: of, Bounds: [model.NumResponseBuckets]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}
		for i, bound := range c.Responses.Bounds {
			if bound >= 1 {
				c.Responses.Buckets[i] = within1s
			}
		}
		c.Responses.Buckets[len(c.Responses.Buckets)-1] = within30s
		return FirstBytes(c)
	}
	require.Equal(t, "half within 0.8 s (1 client, from the SYN on)", said(true, 1, 1, 1))
	require.Equal(t, "half within 0.8 s, 95 % within 1 s (40 clients, from the SYN on)", said(true, 40, 40, 40))
	require.Equal(t, "half within 0.9 s, 95 % within 29 s, 99 % not within 30 s (200 clients, from the SYN on)", said(true, 120, 195, 200))
	require.Empty(t, said(false, 40, 40, 40))
	require.Empty(t, said(true, 0, 0, 0))
}

// TestClientsOfWhomItIsNotKnown: where more than one of a hundred may have had an answer or not, that is said.
func TestClientsOfWhomItIsNotKnown(t *testing.T) {
	c := &model.Clients{}
	c.Answers = model.ClientAnswers{Known: true, Answered: 20, Unanswered: 2763, Unclear: 159}
	require.Equal(t, "2,763 clients gave up waiting inside (of 159 more it was not seen whether they had an answer)", ClientsPhrase(c, "client"))
	c.Answers.Unclear = 20
	require.Equal(t, "2,763 clients gave up waiting inside", ClientsPhrase(c, "client"))
}

func TestFloodAndBalancerAreFindings(t *testing.T) {
	c := &model.Clients{
		Flood:    &model.ClientFlood{Attempts: 5000, Sources: 4900, Period: 10 * time.Second, Certain: true},
		Balancer: &model.ClientSource{Addr: netip.MustParseAddr("10.0.3.7"), Clients: 900},
	}
	before := &model.Listener{Losses: &model.Losses{Clients: c}, Verdict: model.Verdict{Findings: make([]model.Finding, 0, 8)}}
	judge := func() model.Verdict {
		return withClients(time.Time{}, before, time.Minute, reading.DefaultThresholds())
	}
	v := judge()
	require.Len(t, v.Findings, 1, "a load balancer is worth a word only where its clients are turned away")
	require.Equal(t, "syn_flood", v.Findings[0].Code)
	require.Contains(t, v.Findings[0].Evidence, "5,000 single SYNs from about 4,900 addresses")
	c.Outcomes[model.ClientGaveUp] = 5000
	require.Equal(t, "5,000 attempts gave up connecting (most of them of a SYN flood)", ClientsPhrase(c, "client"))
	c.Flood.Certain = false
	require.Equal(t, "5,000 attempts gave up connecting (perhaps of a SYN flood)", ClientsPhrase(c, "client"))
	v = judge()
	require.Equal(t, model.SeverityWarning, v.Findings[0].Severity)
	require.Contains(t, v.Findings[0].Evidence, "or clients whose connect timeout is below a second")
	c.Flood.Certain, c.Outcomes[model.ClientGaveUp] = true, 0
	c.Outcomes[model.ClientStalled] = 1
	v = judge()
	require.Equal(t, "one_source", v.Findings[1].Code)
	require.NotContains(t, v.Findings[1].Evidence, "10.0.3.7", "addresses are in the JSON and on the screen only")
	require.Contains(t, v.Findings[1].Evidence, "At least half of the clients (900) come from one address")
	c.Balancer, c.Proxies = nil, []model.ClientSource{{Addr: netip.MustParseAddr("10.0.3.7"), Clients: 500}, {Addr: netip.MustParseAddr("10.0.3.8"), Clients: 450}}
	v = judge()
	require.Equal(t, "one_source", v.Findings[1].Code)
	require.Contains(t, v.Findings[1].Evidence, "Four of five clients or more (950) come from 2 addresses")
	require.Contains(t, v.Findings[1].Evidence, "connections, not people")
	c.Flood, c.Answers, c.Outcomes = nil, model.ClientAnswers{Known: true, Answered: 20}, [model.NumClientOutcomes]uint64{model.ClientStalled: 15, model.ClientGaveUp: 25}
	require.Equal(t, "40 of 60 connections, mostly from 2 addresses, got no answer: 25 gave up connecting, 15 never got in", noAnswer(c))
	require.Equal(t, "25 connections gave up connecting, 15 never got in", clientsWithin(c, 0))
	c.Proxies, c.Answers.Answered = c.Proxies[:1], 0
	require.Equal(t, "All 40 connections, mostly from one address, got no answer: 25 gave up connecting, 15 never got in", noAnswer(c))
	require.Empty(t, before.Verdict.Findings[:1][0].Code, "the verdict that came in is not changed")
}

// withClients judges a listener again, now that it is known how many clients are behind its
// packets.
func withClients(at time.Time, l *model.Listener, interval time.Duration, t reading.Thresholds) model.Verdict {
	if v, known := Again(at, l, t); known {
		return v
	}
	return AddClients(l.Verdict, l, interval)
}

// What clients that have left repeat is dropped at a queue that is full for a moment, when nobody comes any
// more: that connections come faster than they are accepted is not claimed, nor a longer queue advised.
func TestNobodyCameFaster(t *testing.T) {
	k := tomcat(200, 8192, 4).lost(model.CauseSlowAccept, ack, 400)
	for want, c := range map[model.Cause]*model.Clients{
		model.CauseNone:       {Observed: 1600 * time.Millisecond},
		model.CauseSlowAccept: {Observed: 300 * time.Millisecond},
	} {
		k.Losses.Clients = c
		v := Judge(symptoms.Input{Now: k.Listener, Before: tomcat(200, 8192, 4).Listener, Elapsed: 2 * time.Second, Interval: 2 * time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
		require.Equal(t, model.StatusLosing, v.Status)
		require.Equal(t, want, v.Cause, v.Summary)
		if want == model.CauseNone {
			require.Contains(t, v.Summary, "nobody has begun to connect for 1.6 s: they are of clients that came before, and may have left")
			require.NotContains(t, v.Answer.Do[0].Text, "queue")
		}
	}
}

// Where nothing was dropped, or nothing is accepted, it says that, whoever comes.
func TestNobodyCameHidesNoFact(t *testing.T) {
	full := tomcat(200, 8192, 4).queue(5, 6*time.Second).unknownLimits()
	full.Losses = &model.Losses{Clients: &model.Clients{Observed: 2 * time.Second}}
	v := Judge(symptoms.Input{Now: full.Listener, Before: full.Listener, Elapsed: 2 * time.Second, Interval: 2 * time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.NotContains(t, v.Summary, "clients that came before")
}

// A port that is listened on in another namespace: who is refused in this one came here, which is no mere warning.
func TestRefusedBesideAnotherNamespace(t *testing.T) {
	l := nothing().Listener
	elsewhere(l)
	l.Losses = &model.Losses{Clients: &model.Clients{Observed: 2 * time.Second}}
	l.Losses.Clients.Outcomes[model.ClientRefused] = 5
	e := symptoms.Input{Now: l, Elapsed: 2 * time.Second, Interval: 2 * time.Second, Sysctl: sysctls()}
	v := AddClients(Judge(e, reading.DefaultThresholds()), l, e.Interval)
	require.Equal(t, model.StatusDown, v.Status)
	require.Contains(t, v.Summary, "5 clients were refused")
	require.Contains(t, v.Summary, "java 2024")
	require.Contains(t, v.Answer.Do[0].Command, "ss -Hltnp sport = :8080", "they came here")
	require.Contains(t, v.Answer.Do[2].Command, "--pid 2024")

	l.Elsewhere.Others = 30
	v = Judge(e, reading.DefaultThresholds())
	require.Contains(t, v.Summary, "java 2024 of shop/orders-7 listens on 8080 in another network namespace, and somebody in 30 more")
	require.Contains(t, v.Answer.Do[0].Command, "ss -Hltnp sport = :8080", "they came here")
	require.Contains(t, v.Answer.Do[2].Command, "--all-namespaces --port 8080", "one of many is not the one that was meant")
}

// Of a server near its limit of connections it is not claimed that others were free while as many were reset by
// their clients, which it may have held.
func TestSlotsOfClientsThatReset(t *testing.T) {
	k := tomcat(7, 13, 6).waiting(6).with(model.Streaming, 6).lost(model.CauseSlowAccept, syn, 5)
	for want, resets := range map[model.Cause]uint64{model.CauseNone: 15, model.CauseSlowAccept: 0} {
		v := Judge(symptoms.Input{
			Now: k.Listener, Before: tomcat(7, 13, 6).Listener, Elapsed: 2 * time.Second, Interval: 2 * time.Second,
			Sysctl: sysctls(), Delta: model.Counters{"EstabResets": resets},
		}, reading.DefaultThresholds())
		require.Equal(t, model.StatusLosing, v.Status)
		require.Equal(t, want, v.Cause, v.Summary)
		if want == model.CauseNone {
			require.Contains(t, v.Summary, "whether all 13 connections were taken at that moment was not seen")
		}
	}
}
