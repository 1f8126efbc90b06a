package deployments

import (
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// remedies are all that is advised, in the order of the table.
func remedies() []remedy {
	return slices.Concat(threadRemedies(), connectionRemedies(), idleRemedies(), queueRemedies(), beforeRemedies(), processRemedies(), pauseRemedies(), outgoingRemedies(), unknownRemedies())
}

func isTLS(setting string) bool { return strings.HasPrefix(setting, "server.ssl.key-store=") }

// set is the setting that the first group names, or the one given, to the last group's value.
func set(name string) func(*world, []string) {
	return func(w *world, groups []string) { *w = w.with(name + "=" + groups[len(groups)-1]) }
}

// setting replaces values that the advice has no part in.
func setting(settings ...string) func(*world, []string) {
	return func(w *world, _ []string) { *w = w.with(settings...) }
}

const (
	raiseThreads     = `[Rr]aise server\.tomcat\.threads\.max from \d+ to (\d+)`
	raiseConnections = `[Rr]ais(?:e|ing) server\.tomcat\.max-connections from \d+ to (\d+)`
	acceptCountVain  = `Raising acceptCount (?:would not help|serves nobody faster)`
	moreThreads      = "server.tomcat.threads.max=%s"
	moreConnections  = "server.tomcat.max-connections=%s"
)

func threadRemedies() []remedy {
	return []remedy{{
		finding: "max_threads", load: "5 threads, 20 requests/s of 500 ms",
		world: world{settings: []string{"server.tomcat.threads.max=5"}},
		press: rig.Arrivals(20, "/hello?ms=500"),
		tries: []try{
			{says: raiseThreads, did: moreThreads, apply: set("server.tomcat.threads.max")},
			{says: acceptCountVain, did: "server.tomcat.accept-count=1000", apply: setting("server.tomcat.accept-count=1000"), vain: true},
		},
	}, {
		finding: "max_threads", load: "a burst of 60 requests of 500 ms for 5 threads, every 3 s",
		world: world{settings: []string{"server.tomcat.threads.max=5"}},
		press: rig.Waves(60, 3*time.Second, "/hello?ms=500"),
		tries: []try{{says: raiseThreads, did: moreThreads, apply: set("server.tomcat.threads.max")}},
	}, {
		finding: "abandoned_requests", load: "5 threads, 40 requests/s of 500 ms, whose clients wait 3 s",
		world: world{settings: []string{"server.tomcat.threads.max=5"}, flags: []string{"--interval", "4s"}},
		press: rig.Arrivals(40, "/hello?ms=500"),
		tries: []try{
			{says: `fewer requests let in, would save that work`, did: "maxConnections=8 and acceptCount=1: who does not get in is turned away in 0.9 s", apply: setting("server.tomcat.max-connections=8", "server.tomcat.accept-count=1")},
		},
	}, {
		finding: "executor_queue", load: "4 threads, a queue of 4, 12 clients that come back at once, requests of 300 ms",
		world: world{settings: []string{"server.tomcat.threads.max=4", "server.tomcat.threads.min-spare=4", "server.tomcat.threads.max-queue-capacity=4"}},
		press: rig.Users(12, "/hello?ms=300"),
		tries: []try{
			{says: `max-queue-capacity is 4: raise it to (\d+)`, did: "server.tomcat.threads.max-queue-capacity=%s", apply: set("server.tomcat.threads.max-queue-capacity")},
			{says: `or raise the threads that empty it`, did: "server.tomcat.threads.max=8", apply: setting("server.tomcat.threads.max=8", "server.tomcat.threads.min-spare=8")},
			{says: `acceptCount and maxConnections have no part in it`, did: "server.tomcat.accept-count=1000", apply: setting("server.tomcat.accept-count=1000"), vain: true},
		},
	}}
}

func connectionRemedies() []remedy {
	few := []string{"server.tomcat.max-connections=10", "server.tomcat.accept-count=5"}
	return []remedy{{
		finding: "max_connections", load: "10 connections, 200 threads, 40 requests/s of 500 ms",
		world: world{settings: few},
		press: rig.Arrivals(40, "/hello?ms=500"),
		tries: []try{
			{says: raiseConnections, did: moreConnections, apply: set("server.tomcat.max-connections")},
			{says: acceptCountVain, did: "server.tomcat.accept-count=1000", apply: setting("server.tomcat.accept-count=1000"), vain: true},
		},
	}, {
		finding: "max_threads", load: "10 connections and 5 threads, 40 requests/s of 500 ms",
		world: world{settings: append([]string{"server.tomcat.threads.max=5"}, few...)},
		press: rig.Arrivals(40, "/hello?ms=500"),
		tries: []try{
			{says: raiseThreads, did: moreThreads, apply: set("server.tomcat.threads.max")},
		},
	}, {
		finding: "max_connections", load: "10 connections and 5 threads, 40 requests/s of 500 ms, the connections",
		world: world{settings: append([]string{"server.tomcat.threads.max=5"}, few...)},
		press: rig.Arrivals(40, "/hello?ms=500"),
		tries: []try{
			{says: raiseConnections, did: moreConnections + " alone: the threads come first", apply: set("server.tomcat.max-connections"), vain: true},
			{says: raiseConnections, did: moreConnections + " and 25 threads", apply: func(w *world, groups []string) {
				*w = w.with("server.tomcat.threads.max=25", "server.tomcat.max-connections="+groups[1])
			}},
		},
	}, {
		finding: "max_connections", load: "20 clients that never finish their header hold 20 connections; 5 others/s, for 14 s",
		world: world{settings: []string{"server.tomcat.max-connections=20", "server.tomcat.accept-count=10"}},
		press: rig.Besides(20, "GET /hello HTTP/1.1\r\nHost: loc", rig.Arrivals(5, "/hello", rig.Longer(14*time.Second))),
		tries: []try{{says: raiseConnections, did: moreConnections, apply: set("server.tomcat.max-connections")}},
	}, {
		finding: "max_connections", load: "the same with 5 threads, so that most of the 20 are seen to have none",
		world: world{settings: []string{"server.tomcat.max-connections=20", "server.tomcat.accept-count=10", "server.tomcat.threads.max=5"}},
		press: rig.Besides(20, "GET /hello HTTP/1.1\r\nHost: loc", rig.Arrivals(5, "/hello", rig.Longer(14*time.Second))),
		tries: []try{{says: `lower server\.tomcat\.connection-timeout (?:from \S+ s )?to (\S+) s`, did: "server.tomcat.connection-timeout=%ss", apply: func(w *world, groups []string) {
			*w = w.with("server.tomcat.connection-timeout=" + groups[1] + "s")
		}}},
	}}
}

// idleRemedies: clients that keep their connection after the answer.
func idleRemedies() []remedy {
	few := world{settings: []string{"server.tomcat.max-connections=20", "server.tomcat.accept-count=10", "server.tomcat.connection-timeout=60s"}}
	keep := rig.Returning(3, "/hello", 14*time.Second, 10*time.Second)
	timeout := func(name string) func(*world, []string) {
		return func(w *world, groups []string) { *w = w.with(name + "=" + groups[1] + "s") }
	}
	few.flags = []string{"--interval", "8s"} // the connections are used up after 7 s
	silent := few
	silent.flags = nil
	return []remedy{{
		finding: "keep_alive_idle", load: "20 connections, 3 clients/s that ask, keep the connection and ask again after 10 s, for 14 s",
		world: few, press: keep,
		tries: []try{
			{says: `(?:[Ss]et|[Ll]ower) server\.tomcat\.keep-alive-timeout (?:from \S+ s )?to (\S+) s`, did: "server.tomcat.keep-alive-timeout=%ss", apply: timeout("server.tomcat.keep-alive-timeout")},
			{says: raiseConnections, did: moreConnections, apply: set("server.tomcat.max-connections")},
			{says: `More threads would not help`, did: "server.tomcat.threads.max=400", apply: setting("server.tomcat.threads.max=400"), vain: true},
		},
	}, {
		finding: "keep_alive_idle", load: "20 clients that never send a byte hold 20 connections; 5 others/s, for 14 s",
		world: silent, press: rig.Besides(20, "", rig.Arrivals(5, "/hello", rig.Longer(14*time.Second))),
		tries: []try{
			{says: `(?:Set|Lower) server\.tomcat\.connection-timeout (?:from \S+ s )?to (\S+) s`, did: "server.tomcat.connection-timeout=%ss", apply: timeout("server.tomcat.connection-timeout")},
			{says: `keepAliveTimeout does not concern them`, did: "server.tomcat.keep-alive-timeout=5s", apply: setting("server.tomcat.keep-alive-timeout=5s"), vain: true},
		},
	}}
}
