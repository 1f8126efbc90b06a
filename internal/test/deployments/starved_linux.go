package main

import (
	"fmt"
	"syscall"
	"time"
)

// starved are servers that do not get to their requests, although no limit of theirs is
// reached: clients that wait for seconds are not to be called well.
func starved() []deployment {
	const clients = 40
	embedded := func(b *bench) *server {
		s := b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=200", "minSpareThreads=100")
		b.answers("127.0.0.1:8080")
		b.until("it is warm", func() bool { return s.says(port).MaxThreads > 0 })
		return s
	}
	limits := []string{"--max-threads", "200", "--max-connections", "8192", "--interval", "3s"}
	again := func(b *bench, s *server, halt func()) said {
		c := b.hold("tcp", "127.0.0.1:8080", clients, get("/?ms=0"), nil)
		b.until("all had an answer", func() bool { return c.answered.Load() == clients && s.says(port).Busy == 0 })
		halt()
		c.again(b, get("/?ms=0"))
		wait(b.ctx, 2*time.Second)
		b.row.Truth = fmt.Sprintf("%d clients wait for the answer to a second request on their connections, at least 4 s", clients)
		return b.ask(port, limits...)
	}
	return []deployment{
		{"a CPU limit of 0.01, 40 new clients", func(b *bench) {
			s := embedded(b)
			b.quota(s, "0.01")
			c := b.hold("tcp", "127.0.0.1:8080", clients, get("/?burn=50"), nil)
			wait(b.ctx, 2*time.Second)
			said := b.ask(port, limits...)
			b.row.Truth = fmt.Sprintf("%d of %d clients have no answer after 7 s", clients-int(c.answered.Load()), clients)
			b.verdict(said, "saturated cpu_throttled")
		}},
		{"stopped (SIGSTOP), 40 clients on connections they had before", func(b *bench) {
			s := embedded(b)
			said := again(b, s, func() { b.must(syscall.Kill(s.pid, syscall.SIGSTOP)) })
			b.verdict(said, "saturated jvm_pause")
		}},
		{"frozen by its cgroup, as docker pause does, 40 clients on connections they had before", func(b *bench) {
			s := embedded(b)
			said := again(b, s, func() {
				b.group("freezer", s, "freezer.state", "THAWED")
				b.group("freezer", s, "freezer.state", "FROZEN")
			})
			b.cleanup = append(b.cleanup, func() { b.group("freezer", s, "freezer.state", "THAWED") })
			b.verdict(said, "saturated jvm_pause")
		}},
		{"frozen by its cgroup, 40 new clients", func(b *bench) {
			s := embedded(b)
			b.group("freezer", s, "freezer.state", "THAWED")
			b.group("freezer", s, "freezer.state", "FROZEN")
			b.cleanup = append(b.cleanup, func() { b.group("freezer", s, "freezer.state", "THAWED") })
			c := b.hold("tcp", "127.0.0.1:8080", clients, get("/?ms=0"), nil)
			b.until("all are queued", func() bool { return c.connected.Load() == clients })
			said := b.ask(port, limits...)
			b.row.Truth = fmt.Sprintf("%d clients wait in the accept queue for at least 5 s", clients)
			b.verdict(said, "saturated jvm_pause")
		}},
		{"frozen by its cgroup, a queue of 10, 40 new clients", func(b *bench) {
			s := b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=200", "acceptCount=10")
			b.answers("127.0.0.1:8080")
			b.until("it is warm", func() bool { return s.says(port).MaxThreads > 0 })
			b.overflowsFrozen(s, limits)
		}},
		{"frozen by its cgroup, all connections taken, a queue of 10, 40 new clients", func(b *bench) {
			s := b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=200", "acceptCount=10", "maxConnections=20")
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 20, get("/?ms=60000"), nil)
			b.until("all connections are taken", func() bool { return s.says(port).Busy == 20 })
			b.overflowsFrozen(s, []string{"--max-threads", "200", "--max-connections", "20", "--interval", "3s"})
		}},
		{"pids.max lets 3 more threads start, 40 clients", func(b *bench) {
			s := b.boot("none", options{}, "server.tomcat.threads.min-spare=4")
			b.answers("127.0.0.1:8080")
			b.group("pids", s, "pids.max", fmt.Sprint(threadsOf(s)+3))
			b.hold("tcp", "127.0.0.1:8080", clients, get("/hello?ms=60000"), nil)
			b.until("the threads there are are busy", func() bool { return s.says(port).Busy >= 4 && s.says(port).Connections >= clients })
			b.row.Truth = s.says(port).String() + "; no more can start"
			said := b.ask(port, "--interval", "3s")
			b.verdict(said, "saturated max_threads")
			b.names(said, "See pids_limit")
			b.silent(said, "raise server.tomcat.threads.max")
		}},
	}
}

// overflowsFrozen has more clients come than the queue of a frozen server holds: no
// limit of its own dropped their packets.
func (b *bench) overflowsFrozen(s *server, flags []string) {
	b.group("freezer", s, "freezer.state", "THAWED")
	b.group("freezer", s, "freezer.state", "FROZEN")
	b.cleanup = append(b.cleanup, func() { b.group("freezer", s, "freezer.state", "THAWED") })
	c := b.hold("tcp", "127.0.0.1:8080", 40, get("/?ms=0"), nil)
	b.until("the queue is full", func() bool { return c.connected.Load() >= 11 })
	said := b.ask(port, flags...)
	b.row.Truth = "11 clients in the accept queue, the others' packets are dropped, nothing runs"
	b.verdict(said, "losing jvm_pause")
	b.names(said, "frozen with its cgroup")
	b.silent(said, `"cause": "slow_accept"`, `"cause": "max_connections"`, "raise maxConnections", "Raise acceptCount")
}

// again has each of the clients that hold a connection send the text.
func (c *crowd) again(b *bench, text string) {
	for range cap(c.connections) {
		conn := <-c.connections
		_, err := conn.Write([]byte(text))
		b.must(err)
	}
}
