// Package evidence says what readings of a server's process show of the moment at
// which a packet was dropped: whether it was stopped, was at a safepoint or lacked a
// CPU, whether its files were used up, and what its acceptor thread was doing. Which
// cause that makes is the catalogue's (internal/diagnosis). It works on values alone:
// it reads nothing and knows no clock.
//
// The acceptor thread is the best witness. Tomcat takes a slot of its
// LimitLatch before it calls accept(2) (org.apache.tomcat.util.net.Acceptor), so
// an acceptor that is parked there says that maxConnections is reached whatever
// the configuration, the protocol and the kernel's socket table say. A thread
// held at a HotSpot safepoint sleeps in the same system call, so one reading
// proves nothing: see sleep.go.
package evidence
