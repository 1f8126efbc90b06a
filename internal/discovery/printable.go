package discovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// maxUnavailable bounds what is said of one process.
	maxUnavailable = 32
	// maxSentence bounds one sentence of it.
	maxSentence = 2 * model.MaxName
)

// bounded makes what could not be seen of a process safe to show: the names in
// it are the process's choice. What is beyond the bound is counted.
func bounded(pid int, list []model.Unavailable) []model.Unavailable {
	rest := len(list) - maxUnavailable
	out := make([]model.Unavailable, 0, min(len(list), maxUnavailable+1))
	for _, u := range list[:min(len(list), maxUnavailable)] {
		out = append(out, model.Unavailable{What: sentence(u.What), Why: sentence(u.Why), How: sentence(u.How)})
	}
	if rest > 0 {
		out = append(out, model.Unavailable{What: fmt.Sprintf("%d more of pid %d", rest, pid), Why: "too many to name"})
	}
	return out
}

func sentence(s string) string {
	if len(s) > maxSentence {
		s = s[:maxSentence] + "…"
	}
	return model.Printable(s)
}

// printable does the same to the names in connectors: executor, files,
// properties.
func printable(connectors Connectors) Connectors {
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
	out.Source, out.Note = sentence(s.Source), sentence(s.Note)
	return &out
}
