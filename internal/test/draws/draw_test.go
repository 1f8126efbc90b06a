package draws

import "testing"

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
