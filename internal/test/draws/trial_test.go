package draws

import (
	"testing"
)

func TestApply(t *testing.T) {
	s := server{threads: 4, connections: 20, backlog: 5, pool: 2, named: true}
	for _, one := range []struct {
		do   step
		want server
		ok   bool
	}{
		{step{"server.tomcat.max-connections", "60"}, server{threads: 4, connections: 60, backlog: 5, pool: 2, named: true}, true},
		{step{"maxConnections", "60"}, server{threads: 4, connections: 60, backlog: 5, pool: 2, named: true}, true},
		{step{"server.tomcat.threads.max", "8"}, server{threads: 8, connections: 20, backlog: 5, pool: 2, named: true}, true},
		{step{`maxThreads of the Executor "shared"`, "8"}, server{threads: 8, connections: 20, backlog: 5, pool: 2, named: true}, true},
		{step{"server.tomcat.accept-count", "50"}, server{threads: 4, connections: 20, backlog: 50, pool: 2, named: true}, true},
		{step{"spring.datasource.hikari.maximum-pool-size", "10"}, server{threads: 4, connections: 20, backlog: 5, pool: 10, named: true}, true},
		{step{"server.tomcat.connection-timeout", "5s"}, s, false},
		{step{"net.core.somaxconn", "4096"}, s, false},
		{step{}, s, false},
	} {
		got, ok := s.apply(one.do)
		if ok != one.ok || got != one.want {
			t.Errorf("%v: %+v, %v", one.do, got, ok)
		}
	}
}

func TestWorse(t *testing.T) {
	for _, one := range []struct {
		before, after load
		want          bool
	}{
		{load{100, 50}, load{100, 50}, false},
		{load{100, 50}, load{85, 40}, false},
		{load{100, 50}, load{60, 0}, true},
		{load{100, 50}, load{100, 80}, true},
		{load{100, 50}, load{300, 80}, false},
		{load{3, 0}, load{0, 0}, false},
	} {
		if got := one.after.worse(one.before); got != one.want {
			t.Errorf("%v after %v: %v", one.after, one.before, got)
		}
	}
}

// TestDrawsStay: what a seed and a number stand for does not change when something is added.
func TestDrawsStay(t *testing.T) {
	for _, one := range []struct {
		seed   uint64
		number int
		want   string
	}{
		{1, 23, "boot 3.5.16, nio, Java 25, 9 threads, 25 connections, backlog 100 by SPRING_APPLICATION_JSON, as app, virtual threads; 57 users (connections) ask for sleep of 1300 ms, patience 2.5s and 2s, 5 requests a connection, and a balancer's checks; asked by root"},
		{2, 6, "boot 3.5.16, nio, Java 25, 3 threads, 8192 connections, backlog 16 by environment, as root, virtual threads; 21 users (connections) ask for gc of 700 ms, patience 900ms and 2s, and a balancer's checks, fault: filter without a counter; asked by root"},
		{3, 38, "boot 3.5.16, nio, Java 17, 3 threads, 15 connections, backlog 100 by properties file, as app; 15 users (threads) ask for peer of 600 ms, patience 900ms and 2s, 5 requests a connection, fault: dead acceptor; asked by app"},
	} {
		if got := newDraw(one.seed, one.number).String(); got != one.want {
			t.Errorf("Draw/%d/%d is now %s", one.seed, one.number, got)
		}
	}
}
