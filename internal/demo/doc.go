// Package demo holds a server that admits clients the way Tomcat does, and the
// clients to overload it (or a real Tomcat) with. The queues in front of the
// server are the real kernel's; only the limits behind them are imitated.
package demo
