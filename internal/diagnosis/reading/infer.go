package reading

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Infer returns the connector of now with the limits that are seen in force where
// they contradict the configured ones: code inside the application, or somebody
// with JMX, can overrule every configured value. before is the reading before it,
// nil without one; it is returned with those limits, which it helped to infer.
// latched is how many connections were held when the acceptor was just seen to stand at the
// connection latch, or connections to be taken only as others end; 0 where neither was. Neither
// reading is changed.
func Infer(before, now *model.Listener, latched int) (c *model.Connector, was *model.Listener) {
	if now.Connector == nil || now.Connections == nil {
		return now.Connector, before
	}
	c = new(*now.Connector)
	if n, ok := poolInForce(before, now); ok && !certain(c.MaxThreads) {
		c.MaxThreads = inferred(n, c.MaxThreads, phrase.Sprintf("requests wait, and the pool has not grown beyond %d", n))
	} else if outgrown(now) {
		c.MaxThreads = new(*c.MaxThreads)
		c.MaxThreads.Uncertain = true
		c.MaxThreads.Note = phrase.Sprintf("uncertain: the pool has %d threads, more than that", *c.PoolThreads)
	}
	if n, ok := limitInForce(before, now, latched); ok && !certain(c.MaxConnections) {
		uncounted := (ConnectionLimit(now) == LimitUnknown || UncertainLimit(now)) && now.Connections.Reset == nil
		c.MaxConnections = inferred(n, c.MaxConnections, phrase.Sprintf("connections are taken only as others end, and %d are held", n))
		if c.MaxConnections.Uncertain = uncounted; uncounted {
			c.MaxConnections.Note += "; uncertain: it is more by the connections that clients reset, which could not be counted"
		}
	} else if accepted := now.Connections.Accepted; ConnectionLimit(now) == LimitKnown && accepted > c.MaxConnections.Value+1 {
		c.MaxConnections = new(*c.MaxConnections)
		c.MaxConnections.Uncertain = true
		c.MaxConnections.Note = phrase.Sprintf("uncertain: %d connections are held, more than that", accepted)
	}
	return c, withInferred(before, c)
}

// certain: somebody said so who knows, the server itself or the one who runs tcpdiag. What is
// seen does not overrule it.
func certain(s *model.Setting[int]) bool {
	return s != nil && !s.Uncertain && (s.Kind == model.SourceActuator || s.Kind == model.SourceFlag)
}

// limitInForce is the number of connections that are held while the acceptor waits
// at the connection latch (LimitLatch.countUpOrAwait), where no limit is known for
// certain, or a larger one is said of a server of which all slots were counted,
// those that clients' resets hold as well.
func limitInForce(before, now *model.Listener, latched int) (int, bool) {
	n, limit := max(latched, now.Connections.SlotsInUse()), ConnectionLimit(now)
	switch {
	case now.Connections.Accepted == 0, Inexact(now), latched == 0 && !stillAtLatch(before, now):
		return 0, false
	case limit == LimitKnown && n >= now.Connector.MaxConnections.Value:
		return 0, false
	case limit != LimitUnknown && !UncertainLimit(now) && now.Connections.Reset == nil:
		return 0, false
	}
	return n, true
}

// stillAtLatch reports whether the acceptor was found at the latch when packets
// were dropped, and in both readings clients wait and as many connections are held.
func stillAtLatch(before, now *model.Listener) bool {
	was, counted := SlotsInUse(before)
	if !counted || was != now.Connections.SlotsInUse() || Inexact(before) || !QueueWaits(before) || !QueueWaits(now) || now.Losses == nil {
		return false
	}
	return slices.ContainsFunc(now.Losses.By, func(d model.Drops) bool {
		return d.Cause == model.CauseMaxConnections && d.Evidence == model.EvidenceAcceptor
	})
}

// withInferred is a listener with the limits of a later connector that were
// inferred.
func withInferred(l *model.Listener, c *model.Connector) *model.Listener {
	if l == nil || l.Connector == nil {
		return l
	}
	out, was := *l, *l.Connector
	for _, s := range []struct{ is, was **model.Setting[int] }{{&c.MaxThreads, &was.MaxThreads}, {&c.MaxConnections, &was.MaxConnections}} {
		if *s.is != nil && (*s.is).Kind == model.SourceInferred {
			*s.was = *s.is
		}
	}
	out.Connector = &was
	return &out
}

// poolInForce is the size of a pool that is below the configured one, or of one of
// which no size is known, where requests wait for a thread in both readings:
// Tomcat's executor starts another thread as soon as one is wanted
// (ThreadPoolExecutor.execute, TaskQueue.offer).
func poolInForce(before, now *model.Listener) (int, bool) {
	for _, l := range []*model.Listener{before, now} {
		if l == nil || l.Connector == nil || l.Connector.PoolThreads == nil || WaitingForThread(l) < 2 || Inexact(l) {
			return 0, false
		}
		if l.Connector.Executor != "" || VirtualThreads(l) {
			return 0, false // a shared one is counted by connector
		}
		if busy, seen := BusyThreads(l); !seen || busy < *l.Connector.PoolThreads {
			return 0, false
		}
	}
	n := *now.Connector.PoolThreads
	most, ok := MaxThreads(now)
	unknown := now.Connector.MaxThreads == nil && now.Connector.Kind().Limits
	return n, n > 0 && n == *before.Connector.PoolThreads && (unknown || outgrown(now) || ok && n < most)
}

// inferred replaces a configured value and says so.
func inferred(n int, configured *model.Setting[int], why string) *model.Setting[int] {
	note := why
	if configured != nil {
		note += phrase.Sprintf("; configured is %d (%s)", configured.Value, configured.Origin())
	}
	return &model.Setting[int]{Value: n, Kind: model.SourceInferred, Source: "inferred", Note: note}
}
