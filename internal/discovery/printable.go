package discovery

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// printable does the same to the names in connectors: executor, files,
// properties.
func printable(connectors match.Connectors) match.Connectors {
	for _, c := range connectors {
		for _, name := range []*string{&c.Version, &c.FrameworkVersion, &c.Protocol, &c.Executor} {
			*name = model.Escape(*name)
		}
		for _, s := range []**model.Setting[int]{
			&c.MaxConnections, &c.AcceptCount, &c.MaxThreads, &c.MinSpareThreads, &c.MaxQueue, &c.MaxKeepAliveRequests, &c.Gate,
		} {
			*s = printableSetting(*s)
		}
		for _, s := range []**model.Setting[time.Duration]{&c.ConnectionTimeout, &c.KeepAliveTimeout} {
			*s = printableSetting(*s)
		}
		c.VirtualThreads = printableSetting(c.VirtualThreads)
		c.Backends = printableBackends(c.Backends)
	}
	return connectors
}

// printableBackends: their names are checked where they are read.
func printableBackends(list []model.Backend) []model.Backend {
	out := slices.Clone(list)
	for i := range out {
		if p := out[i].Pool; p != nil {
			out[i].Pool = &model.Pool{Library: p.Library, Setting: p.Setting, Size: *printableSetting(&p.Size)}
		}
	}
	return out
}

func printableSetting[T any](s *model.Setting[T]) *model.Setting[T] {
	if s == nil {
		return nil
	}
	out := *s
	out.Source, out.Note = examine.Sentence(s.Source), examine.Sentence(s.Note)
	return &out
}
