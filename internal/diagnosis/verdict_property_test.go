package diagnosis

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// anyListener is a listener of which anything may be missing and any number
// may be odd.
func anyListener(r *rand.Rand) *model.Listener {
	n := func() int { return []int{-1, 0, 1, 2, 10, 100, 101, 200, 8192, 1 << 31}[r.IntN(10)] }
	pos := func() int { return max(0, n()) }
	maybe := func(v int) *int {
		if r.IntN(3) == 0 {
			return nil
		}
		return &v
	}
	set := func() *model.Setting[int] {
		if r.IntN(3) == 0 {
			return nil
		}
		return &model.Setting[int]{Value: n(), Kind: model.SourceDefault}
	}
	span := func() *time.Duration {
		if r.IntN(3) == 0 {
			return nil
		}
		return new(time.Duration(pos()) * time.Millisecond)
	}
	total := func() *uint64 { return new(uint64(pos())) }
	l := &model.Listener{Port: 8080, Inode: 1, Expected: r.IntN(2) == 0}
	if r.IntN(10) > 0 {
		l.ID = listenerID(8080)
	}
	if r.IntN(5) > 0 {
		l.Process = &model.Process{
			PID: 1, OpenFiles: maybe(pos()), OpenFilesLimit: maybe(pos()), Stopped: r.IntN(9) == 0, Frozen: r.IntN(9) == 0,
			SafepointTime: span(), CPUThrottled: span(), CPUUsed: span(), CPUPeriods: total(), CPUPeriodsThrottled: total(), RunDelay: span(),
		}
		if r.IntN(2) == 0 {
			l.Process.Busiest = &model.Destination{Ports: pos()}
		}
	}
	if r.IntN(5) > 0 {
		l.Connector = &model.Connector{
			Server: []string{"tomcat", "jvm", "other", ""}[r.IntN(4)], Framework: []string{"", "spring-boot"}[r.IntN(2)],
			TLS: r.IntN(4) == 0, MaxConnections: set(), AcceptCount: set(), MaxThreads: set(), MaxQueue: set(),
			PoolThreads: maybe(pos()), BusyThreads: maybe(pos()),
		}
		if r.IntN(4) == 0 {
			virtual(l)
		}
	}
	if r.IntN(5) > 0 {
		l.AcceptQueue = &model.AcceptQueue{Length: pos(), Limit: pos(), Peak: maybe(pos()), OldestWait: span()}
	}
	if r.IntN(5) > 0 {
		c := &model.Connections{Reset: maybe(pos())}
		for p := range c.Phases {
			c.Phases[p] = pos()
			c.Accepted += c.Phases[p]
		}
		c.Unread, c.UnreadNext = time.Duration(pos())*time.Second, time.Duration(pos())*time.Second
		c.Abandoned = min(c.Phases[model.ClientClosed], pos())
		l.Connections = c
	}
	if r.IntN(3) > 0 {
		l.Losses = &model.Losses{AbandonedRequests: uint64(pos()), QueueResets: uint64(pos()), Unattributed: uint64(pos())}
		for range r.IntN(3) {
			d := model.Drops{Packets: uint64(1 + pos())}
			d.Cause = model.DropCauses()[r.IntN(len(model.DropCauses()))]
			d.Packet = []model.Packet{syn, ack, unknownPacket}[r.IntN(3)]
			l.Losses.By = append(l.Losses.By, d)
			l.Losses.DroppedPackets += d.Packets
		}
	}
	return l
}

// Whatever is missing: no panic, and what the words of a verdict promise.
func TestJudgeHoldsForAnyEvidence(t *testing.T) {
	known := make(map[string]bool)
	for _, r := range Runbooks() {
		known[r.Code] = true
	}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 9))
		e := symptoms.Input{Now: anyListener(r), Interval: time.Duration(r.IntN(61)) * time.Second}
		if r.IntN(4) > 0 {
			e.Before, e.Elapsed = anyListener(r), time.Duration(r.IntN(3))*time.Second
		}
		if r.IntN(2) == 0 {
			e.Sysctl = sysctls()
		}
		if r.IntN(9) == 0 {
			e.Closed = &model.Closed{Queued: r.IntN(3)}
		}
		v := Judge(e, reading.DefaultThresholds())
		require.NotEmpty(t, v.Summary, "seed %d", seed)
		require.NotContains(t, v.Summary, "%!", "seed %d", seed)
		require.NotEqual(t, ".", v.Summary, "seed %d", seed)
		l, lost := e.Now, e.Now.Losses
		require.Equal(t, !l.Listening(), v.Status == down, "seed %d", seed)
		if v.Status != down {
			harmed := lost != nil && (lost.DroppedPackets > 0 || lost.QueueResets > 0) || e.Closed != nil && e.Closed.Queued > 0
			require.Equal(t, harmed, v.Status == losing, "seed %d: %s", seed, v.Summary)
		}
		if lost != nil && lost.AbandonedRequests > 0 {
			require.NotContains(t, strings.ToLower(v.Summary), "nothing is lost", "seed %d: somebody gave up", seed)
		}
		if v.Status == losing {
			require.NotEqual(t, model.CauseExecutorQueue, v.Cause, "seed %d: it drops no packet", seed)
			if lost == nil || !slices.ContainsFunc(lost.By, func(d model.Drops) bool { return d.Cause == threads }) {
				require.NotEqual(t, threads, v.Cause, "seed %d: no packet was dropped for want of one", seed)
			}
		}
		if v.Status >= losing && v.Cause != "" {
			require.True(t, slices.ContainsFunc(v.Findings, func(f model.Finding) bool { return f.Code == string(v.Cause) }), "seed %d", seed)
		}
		if l.Connector == nil || l.Connector.MaxConnections == nil {
			if lost == nil || !slices.ContainsFunc(lost.By, func(d model.Drops) bool { return d.Cause == model.CauseSlowAccept }) {
				require.NotEqual(t, model.CauseSlowAccept, v.Cause, "seed %d: not known, not claimed", seed)
			}
		}
		if reading.VirtualThreads(l) {
			require.NotEqual(t, threads, v.Cause, "seed %d", seed)
			require.NotContains(t, v.Chain, threads, "seed %d", seed)
		}
		requireChanges(t, v)
		requireAnswer(t, v)
		for _, f := range v.Findings {
			require.True(t, known[f.Code], "seed %d: %s has no runbook", seed, f.Code)
			require.NotEmpty(t, f.Evidence, "seed %d: %s", seed, f.Code)
			require.False(t, v.Status == down && f.Evidence == ".", "seed %d: %s: %s", seed, f.Code, f.Advice)
			require.False(t, strings.Contains(f.Evidence+f.Advice, "%!"), "seed %d: %s %s", seed, f.Evidence, f.Advice)
		}
	}
}

// A mixed load well below the limits is ok in every snapshot.
func TestJudgeNoFalseAlarm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shape := func() look {
		busy := 60 + r.IntN(91) // up to 75 % of 200
		return tomcat(200, 8192, 100).pool(200).inService(busy).waiting(r.IntN(6)).with(model.Sending, r.IntN(8)).
			idle(300+r.IntN(2000)).with(model.ClientClosed, r.IntN(3)).queue(r.IntN(20), time.Millisecond).
			do(totals(0, 0, 0))
	}
	before := shape()
	for range 3600 {
		now := shape().do(totals(30*time.Millisecond, 0, 300*time.Millisecond))
		e := symptoms.Input{Now: now.Listener, Before: before.Listener, Elapsed: time.Second, Interval: time.Minute, Sysctl: sysctls()}
		v := Judge(e, reading.DefaultThresholds())
		require.Equal(t, ok, v.Status, v.Summary)
		before = now
	}
}

func listenerID(port uint16) model.ListenerID {
	return model.ListenerID{NetNS: 4026531840, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}
}
