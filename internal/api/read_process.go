package api

import (
	"net/netip"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func (p *Process) model() *model.Process {
	if p == nil {
		return nil
	}
	out := &model.Process{
		PID: p.PID, Comm: p.Comm, OpenFiles: p.OpenFiles, OpenFilesLimit: p.OpenFilesLimit, Threads: p.Threads,
		Stopped: p.Stopped, Frozen: p.Frozen, Dumping: p.Dumping, Children: p.Children, StoppedChildren: p.StoppedChildren, StoppedChild: p.StoppedChild, ChildrenUnread: p.ChildrenUnread, Container: p.Container, PodUID: p.PodUID,
		MemoryLimit: p.MemoryLimitBytes, MemoryUsed: p.MemoryUsedBytes, PIDsLimit: p.PIDsLimit,
		OldUsed: p.OldBytes, OldMax: p.OldMaxBytes,
		SafepointTime: spanned(p.SafepointSeconds), GCTime: spanned(p.GCSeconds),
		CPUThrottled: spanned(p.ThrottledSeconds), RunDelay: spanned(p.RunDelaySeconds),
		Stacks: p.Stacks.model(),
	}
	if d := p.Busiest; d != nil {
		out.Busiest = &model.Destination{Address: addrPort(d.Address), Ports: d.Ports, TimeWait: d.TimeWait, Reusable: d.Reusable, Unowned: d.Unowned}
	}
	if p.DownstreamAgeSeconds != nil {
		out.Downstream = downstreamOf(p)
	}
	return out
}

func addrPort(s string) netip.AddrPort {
	a, _ := netip.ParseAddrPort(s)
	return a
}

func downstreamOf(p *Process) *model.Downstream {
	out := &model.Downstream{Age: period(*p.DownstreamAgeSeconds), Workers: p.Workers.model()}
	for i := range p.Downstream {
		peer := p.Downstream[i].model()
		out.ByUser = out.ByUser || p.Downstream[i].ConnectionsMayBeOthers
		if p.Downstream[i].Peer == "other" {
			out.Others = &peer
			continue
		}
		out.Peers = append(out.Peers, peer)
	}
	return out
}

func (p *Peer) model() model.Peer {
	out := model.Peer{
		Address: addrPort(p.Peer), Name: p.Name, ByPort: p.MatchedByPort, Connections: p.Connections, InFlight: p.InFlight,
		Unknown: p.Unknown, Connecting: p.Connecting, AllInFlight: p.AllInFlightRatio, PerSecond: p.RequestsPerSecond,
		Background: p.InFlightAtRest, Workers: p.Workers,
	}
	for field, value := range map[*time.Duration]*float64{
		&out.Oldest: p.OldestInFlightSeconds, &out.OldestConnect: p.OldestConnectSeconds, &out.Mean: p.MeanInFlightSeconds,
	} {
		if value != nil {
			*field = period(*value)
		}
	}
	if p.PoolSize != nil {
		out.Pool = &model.Pool{Setting: p.PoolSetting, Size: model.Setting[int]{Value: *p.PoolSize, Source: p.PoolSource}}
	}
	return out
}

func (w *Workers) model() *model.Workers {
	if w == nil {
		return nil
	}
	out := &model.Workers{Threads: w.Threads, Running: w.Running, PollerBlocked: w.PollerBlocked}
	for _, f := range w.WaitingFor {
		if f.On == "lock" || f.On == "client" {
			out.Parked += f.Threads
		}
		if f.On == model.UDPReceive.Name() {
			out.UDPPeer, _ = netip.ParseAddrPort(f.Peer)
		}
		for call := range model.NumBlockingCalls {
			if f.On == call.Name() {
				out.AddBlocked(call, f.Threads)
			}
		}
	}
	return out
}

func (s *Stacks) model() *model.Stacks {
	if s == nil {
		return nil
	}
	out := &model.Stacks{
		At: s.Time, Took: period(s.TookSeconds), Threads: s.Threads, Workers: s.Workers, Others: s.OtherThreads, Carriers: s.CarrierThreads,
		Virtual: s.VirtualThreads, VirtualShown: !s.VirtualNotShown, Deadlocked: s.DeadlockFound, Cut: s.AnswerWasCut,
	}
	for _, g := range s.Groups {
		out.Groups = append(out.Groups, model.StackGroup(g))
	}
	return out
}

func (c *Connector) model() *model.Connector {
	if c == nil {
		return nil
	}
	return &model.Connector{
		Server: c.Server, Framework: c.Framework, Version: c.Version, FrameworkVersion: c.FrameworkVersion, Protocol: c.Protocol,
		TLS: c.TLS, HTTP2: c.HTTP2, Executor: c.Executor,
		MaxConnections: settingOf(c.MaxConnections), AcceptCount: settingOf(c.AcceptCount), MaxThreads: settingOf(c.MaxThreads),
		MinSpareThreads: settingOf(c.MinSpareThreads), MaxQueue: settingOf(c.MaxQueue), MaxKeepAliveRequests: settingOf(c.MaxKeepAliveRequests),
		ConnectionTimeout: timeOf(c.ConnectionTimeout), KeepAliveTimeout: timeOf(c.KeepAliveTimeout), VirtualThreads: settingOf(c.VirtualThreads),
		PoolThreads: c.PoolThreads, BusyThreads: c.BusyThreads, CurrentConnections: c.CurrentConnections,
	}
}

func settingOf[T any](s *Setting[T]) *model.Setting[T] {
	if s == nil {
		return nil
	}
	return &model.Setting[T]{Value: s.Value, Kind: kindOf(s.Source), Source: s.Source, Note: s.Note}
}

func timeOf(s *Setting[float64]) *model.Setting[time.Duration] {
	if s == nil {
		return nil
	}
	return &model.Setting[time.Duration]{Value: period(s.Value), Kind: kindOf(s.Source), Source: s.Source, Note: s.Note}
}

// kindOf is the kind of a source by the words that its readers write; most are files.
func kindOf(source string) model.SourceKind {
	word, _, _ := strings.Cut(source, " ")
	switch kind := model.SourceKind(word); {
	case strings.HasPrefix(word, "-D"):
		return model.SourceProperty
	case strings.HasPrefix(word, "--"):
		return model.SourceFlag
	case kind == model.SourceDefault, kind == model.SourceEnv, kind == model.SourceArgument, kind == model.SourceProperty,
		kind == model.SourceFlag, kind == model.SourceKernel, kind == model.SourceActuator, kind == model.SourceInferred:
		return kind
	}
	return model.SourceFile
}
