package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Infer returns the connector of now with the limits that are seen in force
// where they contradict the configured ones: code inside the application can
// overrule every configured value. before is the reading before it, nil without
// one. The connector is not changed; it is returned as it is where nothing
// contradicts it.
func Infer(before, now *model.Listener) *model.Connector {
	c := now.Connector
	if c == nil || now.Connections == nil {
		return c
	}
	out := *c
	if n, ok := poolInForce(before, now); ok {
		out.MaxThreads = inferred(n, c.MaxThreads, phrase.Sprintf("requests wait, and the pool has not grown beyond %d", n))
	}
	if held := now.Connections.Accepted; connectionLimit(now) == limitKnown && held > c.MaxConnections.Value+1 {
		uncertain := *c.MaxConnections
		uncertain.Uncertain = true
		uncertain.Note = phrase.Sprintf("uncertain: %d connections are held, more than that", held)
		out.MaxConnections = &uncertain
	}
	if n, ok := latchInForce(before, now); ok {
		out.MaxConnections = inferred(n, c.MaxConnections, phrase.Sprintf("the acceptor stands at the limit while %d connections are held", n))
	}
	return &out
}

// latchInForce is the number of connections at which the acceptor was found to
// wait at the limit (LimitLatch.countUpOrAwait), where fewer than are configured,
// and the same number in both readings, are held: code, or somebody with JMX, has
// set another limit.
func latchInForce(before, now *model.Listener) (int, bool) {
	if before == nil || before.Connections == nil || now.Losses == nil || connectionLimit(now) == limitNone {
		return 0, false
	}
	if partial(before) || partial(now) || !queueWaits(before) || !queueWaits(now) || now.Connections.Reset != nil && *now.Connections.Reset > 0 {
		return 0, false
	}
	n := now.Connections.Accepted
	if n == 0 || n != before.Connections.Accepted || connectionLimit(now) == limitKnown && n >= now.Connector.MaxConnections.Value {
		return 0, false
	}
	for _, d := range now.Losses.By {
		if d.Cause == model.CauseMaxConnections && d.Evidence == model.EvidenceAcceptor {
			return n, true
		}
	}
	return 0, false
}

// Inferred is the listener as it was before, with the limits that its reading
// helped to infer.
func Inferred(before *model.Listener, c *model.Connector) *model.Listener {
	if before == nil || before.Connector == nil || c == nil {
		return before
	}
	out, was := *before, *before.Connector
	for _, s := range []struct{ is, was **model.Setting[int] }{{&c.MaxThreads, &was.MaxThreads}, {&c.MaxConnections, &was.MaxConnections}} {
		if *s.is != nil && (*s.is).Kind == model.SourceInferred {
			*s.was = *s.is
		}
	}
	out.Connector = &was
	return &out
}

// InferLimit returns the connector of a listener whose acceptor was seen waiting
// at the connection latch: what is held then is the limit in force, where none is
// known for certain, or a larger one is said of a server of which all slots were
// counted, those that clients' resets hold as well.
func InferLimit(now *model.Listener) *model.Connector {
	c, held := now.Connector, now.Connections
	if c == nil || held == nil || held.Partial || held.Accepted == 0 {
		return c
	}
	n, m := held.Held(), c.MaxConnections
	if m != nil && m.Value >= 0 && m.Value <= n || m != nil && !m.Uncertain && held.Reset == nil {
		return c
	}
	out := *c
	out.MaxConnections = inferred(n, m, phrase.Sprintf("the acceptor waits for a connection to end, and %d are held", n))
	return &out
}

// poolInForce is the size of a pool that is below the configured one, or of one of
// which no size is known, where requests wait for a thread in both readings:
// Tomcat's executor starts another thread as soon as one is wanted
// (ThreadPoolExecutor.execute, TaskQueue.offer).
func poolInForce(before, now *model.Listener) (int, bool) {
	for _, l := range []*model.Listener{before, now} {
		if l == nil || l.Connector == nil || l.Connector.PoolThreads == nil || waitingRequests(l) < 2 || partial(l) {
			return 0, false
		}
		if l.Connector.Executor != "" || virtualThreads(l) {
			return 0, false // a shared one is counted by connector
		}
		if busy, seen := busyThreads(l); !seen || busy < *l.Connector.PoolThreads {
			return 0, false
		}
	}
	n := *now.Connector.PoolThreads
	most, ok := maxThreads(now)
	unknown := now.Connector.MaxThreads == nil && now.Connector.Server == "tomcat"
	return n, n > 0 && n == *before.Connector.PoolThreads && (unknown || ok && n < most)
}

// inferred replaces a configured value and says so.
func inferred(n int, configured *model.Setting[int], why string) *model.Setting[int] {
	note := why
	if configured != nil {
		note += phrase.Sprintf("; configured is %d (%s)", configured.Value, configured.Origin())
	}
	return &model.Setting[int]{Value: n, Kind: model.SourceInferred, Source: "inferred", Note: note}
}
