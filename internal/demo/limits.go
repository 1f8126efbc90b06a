package demo

import (
	"fmt"
	"time"
)

// ServerOptions are the limits of the embedded server, with Tomcat's names and
// meanings.
type ServerOptions struct {
	Address        string        // host:port to listen on; port 0 picks a free one
	MaxConnections int           // connections accepted and not yet closed (Tomcat's LimitLatch)
	AcceptCount    int           // backlog given to listen(2); the kernel clamps it to somaxconn
	MaxThreads     int           // requests worked on at the same time
	ServiceTime    time.Duration // how long the handler sleeps; a request's ?ms=N beats it
	// KeepAlive is how long a connection may stay idle between two requests; 0
	// answers "Connection: close".
	KeepAlive time.Duration
}

func (o ServerOptions) validate() error {
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"max-connections", o.MaxConnections},
		{"accept-count", o.AcceptCount},
		{"max-threads", o.MaxThreads},
	} {
		if limit.value < 1 {
			return fmt.Errorf("demo: %s %d: must be at least 1", limit.name, limit.value)
		}
	}
	if o.ServiceTime < 0 {
		return fmt.Errorf("demo: service time %s: must not be negative", o.ServiceTime)
	}
	if o.KeepAlive < 0 {
		return fmt.Errorf("demo: keep-alive %s: must not be negative", o.KeepAlive)
	}
	return nil
}
