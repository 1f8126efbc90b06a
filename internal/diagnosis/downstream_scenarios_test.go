package diagnosis

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// database is a peer all of whose connections have been in flight for a while.
func database(inFlight int, change ...func(*model.Peer)) model.Peer {
	p := model.Peer{
		Address: netip.MustParseAddrPort("10.0.3.7:5432"), Name: "orders", Connections: inFlight, InFlight: inFlight,
		Oldest: 4900 * time.Millisecond, Mean: 1250 * time.Millisecond, AllInFlight: new(1.), AllInRow: 10,
		PerSecond: new(float64(inFlight) / 2.5), Background: new(0),
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// hikari is the pool as the configuration has it.
func hikari(size int) func(*model.Peer) {
	return func(p *model.Peer) {
		p.Pool = &model.Pool{
			Library: "HikariCP", Setting: "spring.datasource.hikari.maximum-pool-size",
			Size: model.Setting[int]{Value: size, Kind: model.SourceFile, Source: "application.yml"},
		}
	}
}

func unnamed(p *model.Peer) { p.Name = "" }

// notAtRest: what is in flight while nobody is served was never seen.
func notAtRest(p *model.Peer) { p.Background = nil }

// subscription is a peer that is in flight whatever happens.
func subscription(n int) model.Peer {
	return model.Peer{
		Address: netip.MustParseAddrPort("10.0.3.9:9092"), Connections: n, InFlight: n,
		Oldest: 25 * time.Second, Mean: 12 * time.Second, AllInFlight: new(1.), AllInRow: 60, Background: new(n),
	}
}

// at is where else it is.
func at(address string) func(*model.Peer) {
	return func(p *model.Peer) { p.Address, p.Name = netip.MustParseAddrPort(address), "" }
}

// cluster are the hosts of one, each with one connection of a pool.
func cluster(hosts int) (out []model.Peer) {
	for i := range hosts {
		out = append(out, database(1, at(fmt.Sprintf("10.0.3.%d:9042", i+1))))
	}
	return out
}

// usedUp is a server whose threads all have a request, with requests behind them.
func usedUp(n int, peers ...model.Peer) look {
	return tomcat(n, 8192, 100).pool(n).inService(n).waiting(40).do(func(l *model.Listener) {
		l.Process.Downstream = &model.Downstream{Peers: peers}
	})
}

const (
	downstream = model.CauseDownstream
	pool       = model.CauseConnectionPool
)

func scenariosDownstream() []scenario {
	both := func(name string, peers []model.Peer, cause model.Cause, codes, notCodes []string) scenario {
		chain := chainOf(threads)
		if cause != threads {
			chain = append(chain, cause)
		}
		return scenario{
			name: name, now: usedUp(20, peers...), before: usedUp(20, peers...),
			status: saturated, cause: cause, chain: chain, codes: codes, notCodes: notCodes,
		}
	}
	peers := func(p ...model.Peer) []model.Peer { return p }
	possiblyPool, possiblyPeer := "possible_connection_pool", "possible_downstream"
	return []scenario{
		both("G1 a configured pool of 3 for 20 threads", peers(database(3, hikari(3))), pool, nil, []string{possiblyPool}),
		both("G1 the same, seen for the first time: the configuration knows the pool", peers(database(3, hikari(3), notAtRest)), pool, nil, nil),
		both("G1 a pool of 10, which is half of the threads", peers(database(10, hikari(10))), pool, nil, nil),
		both("G1 a pool of 15: five are short of one", peers(database(15, hikari(15))), pool, nil, nil),
		both("G1 a pool of 3 that nobody configured", peers(database(3)), pool, nil, nil),
		both("G1 the same, never seen at rest: it may be a subscription", peers(database(3, notAtRest)), threads, []string{possiblyPool}, nil),
		both("M a pool of three connections, each to another host of a cluster", cluster(3), pool, nil, []string{possiblyPool}),
		both("M the same, and the threads were seen there", cluster(3), pool, nil, []string{possiblyPool}).working(1, 0),
		both("M two pools of which each may be short", peers(database(3, unnamed), database(2, at("10.0.3.8:6379"))), threads, []string{possiblyPool}, nil),
		both("M a pool beside a peer for which few threads wait", peers(database(3, unnamed), database(1, at("10.0.3.8:6379"))), pool, nil, []string{possiblyPool}),
		both("M a slow cluster: each thread has a connection of its own", peers(database(7, at("10.0.3.1:9042")), database(7, at("10.0.3.2:9042")), database(6, at("10.0.3.3:9042"))), downstream, nil, nil),
		both("M the same, and others wait at a peer with another port", peers(database(6, at("10.0.3.1:9042")), database(6, at("10.0.3.2:9042")), database(4, at("10.0.4.1:5432"))), downstream, nil, nil),
		both("G2 each thread has a connection of its own", peers(database(20)), downstream, nil, []string{possiblyPeer}),
		both("G2 never seen at rest", peers(database(20, notAtRest)), threads, []string{possiblyPeer}, nil),
		both("G2 never seen at rest, but the threads are seen there", peers(database(20, notAtRest, func(p *model.Peer) { p.Workers = new(20) })), downstream, nil, nil),
		both("G3 nobody answers the connects", peers(model.Peer{
			Address: netip.MustParseAddrPort("10.0.3.7:5432"), Connections: 20, Connecting: 20, OldestConnect: 3 * time.Second,
			AllInFlight: new(1.), AllInRow: 5, Background: new(0),
		}), downstream, nil, nil),
		both("G4 a lock: the pool is idle", peers(model.Peer{Address: netip.MustParseAddrPort("10.0.3.7:5432"), Connections: 10, AllInFlight: new(0.), Background: new(0)}), threads, nil, []string{possiblyPool, possiblyPeer}),
		both("G5 two peers, one of them slow", peers(database(16), model.Peer{
			Address: netip.MustParseAddrPort("10.0.3.8:6379"), Connections: 8, InFlight: 2, Oldest: 20 * time.Millisecond, Background: new(0),
		}), downstream, nil, nil),
		both("G6 a subscription beside a lock", peers(subscription(2)), threads, nil, []string{possiblyPool, possiblyPeer}),
		both("G6 a subscription beside the peer that is slow", peers(database(18), subscription(30)), downstream, nil, nil),
		both("G1 never seen at rest, the threads are seen at the pool's connections", peers(database(3, notAtRest)), pool, nil, []string{possiblyPool}).working(3, 0),
		both("G1 a pool of 3 in the first reading, in use for a while", peers(database(3, func(p *model.Peer) { p.AllInRow, p.AllInFlight = 1, nil })), pool, nil, nil),
		both("G1 in the first reading, just begun", peers(database(3, func(p *model.Peer) { p.AllInRow, p.AllInFlight, p.Mean = 1, nil, 100*time.Millisecond })), threads, nil, []string{possiblyPool}),
		both("G4 the threads run beside a subscription", peers(subscription(2)), threads, nil, []string{possiblyPool, possiblyPeer}).working(0, 20),
		both("G2 an asynchronous client: no thread is in a call of its own", peers(database(20)), downstream, nil, []string{possiblyPeer}).working(0, 0),
		both("G7 one connection for all threads, of an asynchronous client", peers(database(1)), downstream, nil, []string{possiblyPool}).working(0, 0),
		both("G7 never seen at rest: the configuration names the peer", peers(database(1, notAtRest)), threads, []string{possiblyPeer}, []string{possiblyPool}).working(0, 0),
		both("G6 a subscription never seen at rest, beside a lock", peers(database(2, notAtRest, unnamed, func(p *model.Peer) { p.PerSecond = new(0.) })), threads, nil, []string{possiblyPool, possiblyPeer}).working(0, 0),
		both("G7 HTTP/2 never seen at rest: the connection was asked again meanwhile", peers(database(1, notAtRest, unnamed)), threads, []string{possiblyPeer}, []string{possiblyPool}).working(0, 0),
		both("G3 the configuration names a server to which no connection is open", nil, threads, []string{"waiting_inside"}, []string{possiblyPool, possiblyPeer}).changed(func(l *model.Listener) {
			l.Process.Downstream = &model.Downstream{
				Workers:     &model.Workers{Threads: 20, Parked: 20, Timed: 20},
				Unconnected: []model.Backend{{Name: "orders", At: []netip.AddrPort{netip.MustParseAddrPort("10.0.3.7:5432")}}},
			}
		}),
		both("the connections may be another process's of the same user", nil, threads, []string{possiblyPeer}, nil).changed(func(l *model.Listener) {
			l.Process.Downstream = &model.Downstream{ByUser: true, Peers: peers(database(20))}
		}),
		both("a reading from before the trouble", nil, threads, nil, []string{possiblyPeer, possiblyPool}).changed(func(l *model.Listener) {
			l.Process.Downstream = &model.Downstream{Age: time.Minute, Peers: peers(database(20))}
		}),
	}
}

// changed changes both snapshots.
func (s scenario) changed(change func(*model.Listener)) scenario {
	s.now, s.before = s.now.do(change), s.before.do(change)
	return s
}

// working: as many threads were seen to wait for the first peer, or to run; the rest
// of 20 is parked.
func (s scenario) working(there, running int) scenario {
	return s.changed(func(l *model.Listener) {
		d := *l.Process.Downstream
		d.Peers = append([]model.Peer(nil), d.Peers...)
		for i := range d.Peers {
			d.Peers[i].Workers = new(0)
		}
		d.Peers[0].Workers = new(there)
		d.Workers = &model.Workers{Threads: 20, Running: running, Parked: 20 - there - running}
		l.Process.Downstream = &d
	})
}

// A pool that requests on virtual threads wait for is the cause though no thread is used up.
func TestAPoolBehindVirtualThreads(t *testing.T) {
	judged := func(inService int, p model.Peer) model.Verdict {
		now := tomcat(200, 8192, 100).do(virtual).inService(inService).do(func(l *model.Listener) {
			l.Process.Downstream = &model.Downstream{Peers: []model.Peer{p}}
		})
		return Judge(scenario{now: now, before: now}.evidence(), reading.DefaultThresholds())
	}
	v := judged(60, database(3, hikari(3)))
	require.Equal(t, model.StatusSaturated, v.Status)
	require.Equal(t, []model.Cause{pool}, v.Chain)
	require.Equal(t, "60 requests are in service on virtual threads: 3 wait for 10.0.3.7:5432 (orders), the oldest for 4.9 s, "+
		"57 for one of its 3 connections; the accept queue is empty and nothing is lost yet.", v.Summary)
	require.Equal(t, "60 requests are in service on virtual threads; 3 of 3 connections in flight, all of them in 100 % of the readings of the last minute; "+
		"about 2.5 s an answer; spring.datasource.hikari.maximum-pool-size is 3 (application.yml).", v.Findings[0].Evidence)
	require.Equal(t, "Raise spring.datasource.hikari.maximum-pool-size from 3 if 10.0.3.7:5432 (orders) answers more at a time as fast: "+
		"at about 2.5 s an answer 3 connections carry 1.2 requests a second. Or shorten what is asked there: the other requests wait for one of its connections.", v.Findings[0].Advice)
	v = judged(60, database(3, hikari(3), func(p *model.Peer) { p.InFlight, p.Unknown = 1, 2 }))
	require.Contains(t, v.Summary, ": at most 3 wait for 10.0.3.7:5432 (orders), the oldest for 4.9 s, at least 57 for one of its 3 connections;")
	once := func(p *model.Peer) { p.AllInRow, p.Mean = 1, 20*time.Millisecond }
	require.Equal(t, model.StatusOK, judged(60, database(3, hikari(3), once)).Status, "the pool was used up at one moment: others may wait for something else")
	require.Equal(t, model.StatusOK, judged(60, database(3, hikari(10))).Status, "it has room")
	require.Equal(t, model.StatusOK, judged(4, database(3, hikari(3))).Status, "most requests have a connection")
	require.Equal(t, model.StatusOK, judged(60, database(3)).Status, "nothing is known of a pool")
}

// A pool of connections to a cluster is none of a single host's: all are named.
func TestAPoolOfACluster(t *testing.T) {
	judged := func(hosts int) model.Verdict {
		now := usedUp(20, cluster(hosts)...)
		return Judge(scenario{now: now, before: now}.evidence(), reading.DefaultThresholds())
	}
	v := judged(3)
	require.Equal(t, "All 20 threads are busy: 3 wait for 10.0.3.1:9042, 10.0.3.2:9042 and 10.0.3.3:9042, the oldest for 4.9 s, "+
		"17 wait for one of their 3 connections; 40 requests wait for a thread, the accept queue is empty and nothing is lost yet.", v.Summary)
	require.Equal(t, "the pool of connections to 10.0.3.1:9042, 10.0.3.2:9042 and 10.0.3.3:9042", v.Answer.Do[1].Setting)
	require.Contains(t, judged(9).Summary, "10.0.3.1:9042, 10.0.3.2:9042, 10.0.3.3:9042, 10.0.3.4:9042 and 5 other hosts")
}

// kept is a pool that is full of open connections on which nothing is in flight.
func kept(size int) model.Peer {
	return database(size, hikari(size), func(p *model.Peer) {
		p.InFlight, p.Oldest, p.Mean, p.AllInRow, p.AllInFlight, p.PerSecond, p.Workers = 0, 0, 0, 0, new(0.), new(0.), new(0)
	})
}

// service is a peer without a configured pool, where threads are seen to wait.
func service(n int) model.Peer {
	return database(n, at("10.0.3.8:8443"), notAtRest, func(p *model.Peer) { p.Workers = &n })
}

// What looks like a pool without a name: others wait for a lock, or for what is held over the call.
func TestWhatSpeaksAgainstAPoolWithoutAName(t *testing.T) {
	judged := func(timed int, change func(*model.Listener), peers ...model.Peer) (model.Verdict, map[string]string) {
		now := usedUp(20, peers...).do(func(l *model.Listener) {
			l.Process.Downstream.Workers = &model.Workers{Threads: 20, Parked: 20 - peers[0].InFlight, Timed: timed}
			if change != nil {
				change(l)
			}
		})
		v := Judge(scenario{now: now, before: now}.evidence(), reading.DefaultThresholds())
		found := make(map[string]string)
		for _, f := range v.Findings {
			found[f.Code] = f.Evidence + " " + f.Advice
		}
		return v, found
	}
	const possible = "possible_connection_pool"

	v, found := judged(17, nil, service(3), kept(10))
	require.Equal(t, threads, v.Cause, "database connections that are kept over a call")
	require.Contains(t, found[possible], "meanwhile the 10 connections of another pool, to 10.0.3.7:5432 (orders), are all open and hardly used, as where handlers keep one while they wait for 10.0.3.8:8443")
	require.NotContains(t, fmt.Sprint(v.Answer, found), " to 20")
	v, _ = judged(0, nil, service(3), kept(10))
	require.Equal(t, pool, v.Cause, "those that wait have no timeout, as HikariCP's have")
	v, _ = judged(17, nil, service(3), func() model.Peer { p := kept(10); p.Connections = 9; return p }())
	require.Equal(t, pool, v.Cause, "the other pool has room")
	v, _ = judged(0, nil, service(3))
	require.Equal(t, pool, v.Cause, "a queue of the application's own, on which threads wait without a timeout")

	v, found = judged(0, nil, service(1))
	require.Equal(t, threads, v.Cause, "a lock around a call")
	require.Contains(t, found[possible], "a lock that is held over the call")
	require.NotContains(t, fmt.Sprint(v.Answer, found), "1 to 20")

	waiting := model.StackGroup{Threads: 17, Worker: true, State: "BLOCKED", Library: "com.acme.Tokens.refresh", Application: "com.acme.Tokens.refresh"}
	calling := model.StackGroup{Threads: 3, Worker: true, State: "RUNNABLE", Library: "sun.nio.ch.Net.poll", Application: "com.acme.Tokens.ask"}
	v, found = judged(0, dumped(waiting, calling), service(3))
	require.Equal(t, threads, v.Cause, "the JVM says that they wait for a monitor")
	require.NotContains(t, found, possible)
	require.Contains(t, found["waiting_inside"], "Tokens.refresh")
	waiting.State = "WAITING"
	v, _ = judged(0, dumped(waiting, calling), service(3))
	require.Equal(t, pool, v.Cause)

	grows := func(p *model.Peer) { hikari(10)(p) }
	v, found = judged(17, nil, database(3, grows, func(p *model.Peer) { p.Workers = new(3) }))
	require.Equal(t, threads, v.Cause, "the pool has room")
	require.Contains(t, found[possible], "the pool may have 10")
}

// A configured pool of which eight of ten are in flight, by other threads than those that serve requests, and two
// idle: the servers' threads wait for those others.
func TestAConfiguredPoolThatOtherThreadsUse(t *testing.T) {
	judged := func(at, timed int, change func(*model.Peer)) (model.Verdict, string) {
		p := database(10, hikari(10), change)
		p.Workers = &at
		now := usedUp(20, p).do(func(l *model.Listener) {
			l.Process.Downstream.Workers = &model.Workers{Threads: 20, Parked: 20 - at, Timed: timed}
		})
		v := Judge(scenario{now: now, before: now}.evidence(), reading.DefaultThresholds())
		for _, f := range v.Findings {
			if f.Code == "possible_connection_pool" {
				return v, f.Evidence + " " + f.Advice
			}
		}
		return v, ""
	}
	short := func(n int, share float64) func(*model.Peer) {
		return func(p *model.Peer) { p.InFlight, p.AllInRow, p.AllInFlight = p.Connections-n, 0, &share }
	}
	v, possible := judged(0, 0, short(2, 0))
	require.Equal(t, threads, v.Cause, "two are idle all the time")
	require.Contains(t, possible, "one of them is idle all the time")
	require.NotContains(t, fmt.Sprint(v.Answer), "from 10 to 20")
	v, _ = judged(9, 10, short(1, 0))
	require.Equal(t, threads, v.Cause, "one is")
	v, _ = judged(9, 10, short(1, .6))
	require.Equal(t, pool, v.Cause, "one is on its way, and in other readings none was")
	v, _ = judged(9, 10, func(p *model.Peer) {
		p.AllInRow, p.AllInFlight, p.Mean, p.Oldest = 1, nil, 20*time.Millisecond, 40*time.Millisecond
	})
	require.Equal(t, threads, v.Cause, "used up at one moment")
	v, _ = judged(10, 10, func(p *model.Peer) { p.Connections, p.AllInRow, p.AllInFlight = 11, 0, new(0.) })
	require.Equal(t, pool, v.Cause, "one that is none of the pool is idle")

	v, possible = judged(0, 0, func(*model.Peer) {})
	require.Equal(t, threads, v.Cause, "an executor of ten for all ten of them, and threads that wait for it")
	require.Contains(t, possible, "most wait without a timeout, as nobody does for a connection of HikariCP")
	v, _ = judged(0, 10, func(*model.Peer) {})
	require.Equal(t, pool, v.Cause, "they have a timeout")
	v, _ = judged(0, 0, func(p *model.Peer) { p.Pool.Library = "r2dbc-pool" })
	require.Equal(t, pool, v.Cause, "a pool on whose connections no worker ever waits itself")
}

// More threads are never advised where they would only wait, or may.
func TestMoreThreadsAreNotAdvised(t *testing.T) {
	for _, s := range scenariosDownstream() {
		v := Judge(s.evidence(), reading.DefaultThresholds())
		doubted := slices.ContainsFunc(v.Findings, func(f model.Finding) bool {
			return strings.HasPrefix(f.Code, "possible_") || f.Code == "waiting_inside"
		})
		if v.Cause == threads && !doubted {
			continue
		}
		for _, f := range v.Findings {
			require.NotContains(t, f.Advice, "raise server.tomcat.threads.max", "%s: %s", s.name, f.Code)
			require.NotContains(t, f.Advice, "Raise server.tomcat.threads.max", "%s: %s", s.name, f.Code)
		}
	}
}

// The peer that is blamed is the one that threads wait for.
func TestADecoyIsNeverBlamed(t *testing.T) {
	for _, s := range scenariosDownstream() {
		v := Judge(s.evidence(), reading.DefaultThresholds())
		require.NotContains(t, v.Summary, "10.0.3.9", s.name)
		for _, f := range v.Findings {
			require.False(t, strings.Contains(f.Evidence+f.Advice, "10.0.3.9"), "%s: %s", s.name, f.Code)
		}
	}
}

// A server that is well is not asked what it waits for.
func TestNothingIsSaidOfAPeerWhileThreadsAreFree(t *testing.T) {
	k := usedUp(20, database(3, hikari(3))).inService(10).waiting(0)
	v := Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds())
	require.Equal(t, model.StatusOK, v.Status)
	require.Empty(t, v.Chain)
}
