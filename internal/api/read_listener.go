package api

import (
	"net/netip"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func (l *Listener) model() model.Listener {
	out := model.Listener{
		ID: listenerID(l.Address, l.NetNS), Port: l.Port, Inode: l.Inode, Members: max(l.Members, 1), Expected: l.Expected,
		Pod:         l.Pod.model(),
		Process:     l.Process.model(),
		Connector:   l.Connector.model(),
		SynBacklog:  (*model.SynBacklog)(l.SynBacklog),
		AcceptQueue: l.AcceptQueue.model(),
		Connections: l.Connections.model(),
		Limits:      limitsOf(l.Limits),
		Losses:      l.Losses.model(),
		Totals:      l.Totals.model(),
		Recent:      l.Recent.model(),
		Verdict:     l.Verdict.model(),
		Draining:    (*model.OtherProcess)(l.Draining),
	}
	if out.Losses != nil {
		out.Losses.Clients = l.Clients.model()
	}
	if e := l.Elsewhere; e != nil {
		out.Elsewhere = &model.Elsewhere{Port: l.Port, PID: e.PID, Comm: e.Comm, Pod: e.Pod.model()}
	}
	if last := l.LastListener; last != nil {
		out.Last = &model.LastListener{Address: last.Address, Comm: last.Comm, PID: last.PID, Pod: last.Pod.model(), Seen: last.Seen, Ago: period(last.AgoSeconds)}
	}
	countBusy(&out)
	return out
}

// countBusy takes the number of busy threads from the limit that was made of it: what else it
// is counted from is not all in the document.
func countBusy(l *model.Listener) {
	if l.Connector == nil || l.Connector.BusyThreads != nil {
		return
	}
	for i := range l.Limits {
		if l.Limits[i].Name == string(model.CauseMaxThreads) {
			l.Connector.BusyThreads = &l.Limits[i].Used
		}
	}
}

// listenerID reads what ListenerID.String writes. An address that is none is that of a
// port on which nothing listens.
func listenerID(address string, ns uint64) model.ListenerID {
	id := model.ListenerID{NetNS: ns}
	colon := max(0, strings.LastIndex(address, ":"))
	host, device, _ := strings.Cut(address[:colon], "%")
	if at, err := netip.ParseAddrPort(host + address[colon:]); err == nil {
		id.Address, id.Device = at, device
	}
	return id
}

func (q *AcceptQueue) model() *model.AcceptQueue {
	if q == nil {
		return nil
	}
	out := &model.AcceptQueue{Length: q.Length, Limit: q.Limit, Peak: q.Peak, Probes: q.Probes, OldestWait: spanned(q.OldestWaitSeconds), SocketDrops: q.SocketDrops, Recent: q.Length}
	if q.PeakAgeSeconds != nil {
		out.PeakAge = period(*q.PeakAgeSeconds)
	}
	return out
}

func (c *Connections) model() *model.Connections {
	if c == nil {
		return nil
	}
	out := &model.Connections{
		Accepted: c.Accepted, Reset: c.Reset, Abandoned: c.Abandoned, Left: c.Left, LeftFor: period(c.LeftSeconds), Repeating: c.Repeating, Unacknowledged: c.Unacknowledged, Forgotten: c.Forgotten, Partial: c.Partial,
		Subset: c.Subset, Error: c.SubsetError, States: c.States,
	}
	out.Phases = [model.NumPhases]int{
		model.Waiting: c.Waiting, model.InService: c.InService, model.Sending: c.Sending, model.Idle: c.Idle,
		model.ClientClosed: c.ClientClosed, model.Streaming: c.Streaming, model.Unclassified: c.Unclassified,
	}
	if c.Silent != nil {
		out.Silent = *c.Silent
	}
	if c.AgeSeconds != nil {
		out.Age = period(*c.AgeSeconds)
	}
	if p := c.TopPeer; p != nil {
		out.TopPeer = new(p.model())
	}
	for _, p := range c.TopPeers {
		out.TopPeers = append(out.TopPeers, p.model())
	}
	return out
}

func (p PeerShare) model() model.PeerCount {
	a, _ := netip.ParseAddr(p.Address)
	return model.PeerCount{Address: a, Connections: p.Connections}
}

func limitsOf(in []Limit) (out []model.Limit) {
	for _, l := range in {
		limit := model.Limit{Name: l.Name, Used: l.Used, Max: l.Max, FullIn: spanned(l.FullInSeconds)}
		if l.Ratio != nil {
			limit.Ratio = *l.Ratio
		}
		out = append(out, limit)
	}
	return out
}

func (l *Losses) model() *model.Losses {
	if l == nil {
		return nil
	}
	out := &model.Losses{
		DroppedPackets: l.DroppedPackets, Unattributed: l.Unattributed, AbandonedRequests: l.AbandonedRequests,
		QueueResets: l.QueueResets, SocketDrops: l.SocketDrops, WorstCase: l.WorstCase,
	}
	for _, d := range l.By {
		out.By = append(out.By, model.Drops{
			DropKey: model.DropKey{Cause: model.Cause(d.Cause), Packet: model.Packet(d.Packet)},
			Packets: d.Packets, Evidence: model.Evidence(d.Evidence), Estimated: d.Estimated,
		})
	}
	return out
}

func (r *Recent) model() *model.Recent {
	if r == nil {
		return nil
	}
	return &model.Recent{
		Began: r.Began, Ended: r.Ended, Over: true, Latest: r.Began, ClientsTurnedAway: r.ClientsTurnedAway, Proxies: r.Proxies,
		Packets: r.Packets, QueueResets: r.QueueResets, Cause: model.Cause(r.Cause),
	}
}

func (v *Verdict) model() model.Verdict {
	out := model.Verdict{Status: StatusNamed(v.Status), Cause: model.Cause(v.Cause), Summary: v.Summary}
	for _, c := range v.Chain {
		out.Chain = append(out.Chain, model.Cause(c))
	}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, model.Finding{Code: f.Code, Severity: model.Severity(f.Severity), Evidence: f.Evidence, Advice: f.Advice})
	}
	if a := v.Answer; a != nil {
		out.Answer = model.Answer{What: a.What, Why: a.Why, Not: a.Not}
		for _, s := range a.Do[:min(len(a.Do), model.MaxSteps)] {
			out.Answer.Do = append(out.Answer.Do, model.Step{Text: s.Text, Command: s.Command, Setting: s.Setting, File: s.File, From: s.From, To: s.To, Effect: s.Effect})
		}
	}
	return out
}

// StatusNamed is the status of that name. One of a later version is not ok: it is a warning.
func StatusNamed(name string) model.Status {
	for s := range model.NumStatuses {
		if s.String() == name {
			return s
		}
	}
	return model.StatusWarning
}
