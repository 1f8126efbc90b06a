package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/crowd"
)

// waitCase is one thing that threads can wait for.
type waitCase struct {
	name string
	run  func(*bench)
}

const (
	port, second = 18080, 18081
	clients      = 60
	threads      = 20
	orders       = "127.0.0.1:15432"
	modern       = "/usr/lib/jvm/temurin-25-jdk-amd64/bin/java"
)

func cases() []waitCase {
	return []waitCase{
		{"G1 HikariCP's default of 10, queries of 2.5 s", func(b *bench) { b.pool(10) }},
		{"G1 a pool of 3, queries of 2.5 s", func(b *bench) { b.pool(3, "spring.datasource.hikari.maximum-pool-size=3") }},
		{"G1 a lock held on a table, Spring Data", lockedTable},
		{"G1 the advice applied: the pool; and what was not advised: the threads", advice},
		{"plan: 60 clients at once, 20 threads, 3 connections, 2.5 s", func(b *bench) { b.planned(3) }},
		{"plan: the same with 10 connections", func(b *bench) { b.planned(10) }},
		{"G2 a connection for each thread, answers after 2.5 s", func(b *bench) {
			s := b.backend(2500 * time.Millisecond)
			b.plain()
			b.crowd(clients, "/socket?to="+s.address)
			b.peer(s.address, "downstream", threads, func() int { return int(s.waiting.Load()) })
		}},
		{"G3 connects that nobody answers", hanging},
		{"G3 a database that has died: connects are refused", dead},
		{"G4 a lock", func(b *bench) { b.nobody("/lock?ms=500", "`synchronized` around 500 ms", "lock, a pool or a timer") }},
		{"G4 a timer", func(b *bench) { b.nobody("/sleep?ms=2500", "`Thread.sleep` of 2.5 s", "lock, a pool or a timer") }},
		{"G4 the CPU", func(b *bench) {
			b.nobody("/burn?ms=500", "20 threads that compute, on as many processors as the machine has", "run")
		}},
		{"G5 two backends, one of them slow", func(b *bench) {
			slow, fast := b.backend(2500*time.Millisecond), b.backend(time.Millisecond)
			b.plain()
			b.crowd(clients, "/socket?to="+slow.address)
			b.crowd(2, "/socket?to="+fast.address)
			l := b.peer(slow.address, "downstream", threads-2, func() int { return int(slow.waiting.Load()) })
			b.silent(l, fast.address)
		}},
		{"G6 a subscription and a long poll, beside nothing, beside a timer, beside a slow backend", decoy},
		{"G7 a pool of 3 and TLS to the database", func(b *bench) {
			b.encrypted()
			b.app(port, "spring.datasource.url=jdbc:postgresql://"+orders+"/orders?sslmode=require", "spring.datasource.hikari.maximum-pool-size=3")
			b.crowd(clients, "/query?ms=2500")
			b.peer(orders, "connection_pool", 3, b.active)
		}},
		{"G7 a pool of 3 and virtual threads, Java 25", virtual},
		{"G7 a backend over HTTP/2: one connection for all requests", multiplexed},
		{"G8 a pool of 3 seen by another user", nobodySees},
		{"G8 a pool of 3 in another container, seen from the machine's own namespaces", func(b *bench) {
			b.java = []string{"unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "java"}
			b.outside = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", os.Getppid())}
			b.pool(3, "spring.datasource.hikari.maximum-pool-size=3")
		}},
		{"Redis stopped, Jedis with a pool of 8", func(b *bench) {
			b.stoppedRedis("spring.data.redis.client-type=jedis", "spring.data.redis.jedis.pool.max-active=8")
			b.peer("127.0.0.1:16379", "connection_pool", 8, func() int { return 8 })
		}},
		{"Redis stopped, Lettuce: one connection for all threads", func(b *bench) {
			b.stoppedRedis()
			b.until("requests wait", func() bool { return b.ask(port).Connections.Waiting >= clients-threads-8 })
			l := b.ask(port)
			b.row.Truth = "20 threads wait for one connection, which another thread reads"
			b.wants(l, "possible_downstream", "127.0.0.1:16379 (redis)")
		}},
		{"an HTTP service that is a saturated Tomcat, which waits for its database's pool", chain},
	}
}

// plain is the application without load on its database.
func (b *bench) plain(settings ...string) {
	b.postgres()
	b.app(port, settings...)
}

// pool has the clients query the database.
func (b *bench) pool(size int, settings ...string) {
	b.plain(settings...)
	b.crowd(clients, "/query?ms=2500")
	l := b.peer(orders, "connection_pool", size, b.active)
	b.want(strings.Contains(advised(l), fmt.Sprintf("spring.datasource.hikari.maximum-pool-size from %d to %d", size, threads)), "the advice is %q", advised(l))
}

// nobodySees: who may read neither descriptors nor threads blames nobody, and is told
// what is missing.
func nobodySees(b *bench) {
	b.pool(3, "spring.datasource.hikari.maximum-pool-size=3")
	l, s := b.askAs([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, port)
	var missing []string
	for _, u := range s.Unavailable {
		missing = append(missing, u.What)
	}
	b.row.Truth = "as nobody: unavailable are " + strings.Join(missing, ", ")
	b.want(l.Verdict.Cause != "downstream", "%s", l.Verdict.Summary)
	b.want(l.Process == nil || l.Process.Workers == nil, "threads of another user were read")
	b.want(len(missing) > 0, "nothing is said to be missing")
}

func lockedTable(b *bench) {
	b.plain()
	b.must(b.get(port, "/order"))
	b.lock()
	b.crowd(clients, "/order")
	b.peer(orders, "connection_pool", 10, b.active)
}

// advice measures what is served as it is, with the pool raised as advised, and with
// more threads, which were not advised.
func advice(b *bench) {
	b.postgres()
	const query = "/query?ms=500"
	measure := func(settings ...string) float64 {
		before := len(b.ends)
		b.app(port, settings...)
		c := b.crowd(clients, query)
		b.until("requests are served", func() bool { return c.served.Load() > clients })
		rate := c.rate(20 * time.Second)
		if l := b.ask(port); len(settings) == 1 {
			b.want(l.Verdict.Cause == "connection_pool", "%s", l.Verdict.Summary)
			b.want(!strings.Contains(advised(l), "raise server.tomcat.threads.max"), "threads are advised: %s", advised(l))
		}
		said := b.row.Said
		for i := len(b.ends) - 1; i >= before; i-- {
			b.ends[i]()
		}
		b.ends = b.ends[:before]
		b.row.Said = said
		return rate
	}
	as := measure("spring.datasource.hikari.maximum-pool-size=3")
	said := b.row.Said
	more := measure("spring.datasource.hikari.maximum-pool-size=3", "server.tomcat.threads.max=40")
	pool := measure("spring.datasource.hikari.maximum-pool-size=20", "server.tomcat.threads.max=20")
	b.row.Said = said
	b.row.Truth = fmt.Sprintf("3 connections and 20 threads serve %.1f requests a second; 40 threads %.1f (× %.2f); 20 connections %.1f (× %.2f, said: up to 6.7)", as, more, more/as, pool, pool/as)
	b.want(math.Abs(more/as-1) < 0.1, "more threads changed what is served")
	b.want(pool/as > 0.9*20/3, "the pool did not bring what was said")
}

// planned lets clients loose at once, and compares when the last is answered with
// what plan says.
func (b *bench) planned(connections int) {
	// HikariCP serves waiting threads in no order: one that waits for 30 s, its default, fails.
	b.plain(fmt.Sprint("spring.datasource.hikari.maximum-pool-size=", connections), "spring.datasource.hikari.connection-timeout=120000")
	warm := b.crowd(clients, "/query?ms=20")
	b.until("the server is warm", func() bool { return warm.served.Load() > 20*clients })
	warm.stop()
	b.until("the server is idle", func() bool { return b.ask(port).Connections.Accepted == 0 })
	out, err := exec.CommandContext(b.ctx, b.dir+"/tcpdiag", "plan", "--requests", fmt.Sprint(clients), "--service-time", "1ms",
		"--backend-connections", fmt.Sprint(connections), "--backend-time", "2.5s", "--threads", fmt.Sprint(threads), "--client-timeout", "0", "-o", "json").Output()
	b.must(err)
	var plan api.Plan
	b.must(json.Unmarshal(out, &plan))
	began := time.Now()
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range clients {
		wg.Go(func() {
			if b.get(port, "/query?ms=2500") != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(began).Seconds()
	b.row.Truth = fmt.Sprintf("the last is answered after %.2f s, %d of %d", took, clients-failed.Load(), clients)
	b.row.Said = fmt.Sprintf("%.2f s (%+.1f %%). %s", plan.ClientsDoneSeconds, 100*(plan.ClientsDoneSeconds/took-1), plan.Summary)
	b.want(failed.Load() == 0, "%d failed", failed.Load())
	b.want(math.Abs(plan.ClientsDoneSeconds/took-1) <= 0.02, "more than 2 %% apart")
}

// hanging: a listener whose queue is full drops the packets of who connects.
func hanging(b *bench) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	b.must(err)
	b.ends = append(b.ends, func() { _ = syscall.Close(fd) })
	b.must(syscall.Bind(fd, &syscall.SockaddrInet4{Port: 15999, Addr: [4]byte{127, 0, 0, 1}}))
	b.must(syscall.Listen(fd, 0))
	c, err := (&net.Dialer{}).DialContext(b.ctx, "tcp", "127.0.0.1:15999")
	b.must(err)
	b.ends = append(b.ends, func() { _ = c.Close() })
	b.plain()
	b.crowd(clients, "/socket?to=127.0.0.1:15999")
	b.until("the connects", func() bool {
		l := b.ask(port)
		for _, p := range l.Process.Downstream {
			if p.Peer == "127.0.0.1:15999" && p.Connecting == threads {
				return true
			}
		}
		return false
	})
	l := b.ask(port)
	b.row.Truth = "20 threads connect to a listener whose queue is full"
	b.want(l.Verdict.Cause == "downstream" && strings.Contains(l.Verdict.Summary, "for a connection to 127.0.0.1:15999"), "%s", l.Verdict.Summary)
}

func (b *bench) stoppedRedis(settings ...string) {
	r := b.redis()
	b.plain(settings...)
	b.must(b.get(port, "/redis"))
	b.must(r.Process.Signal(syscall.SIGSTOP))
	b.crowd(clients, "/redis")
}

// chain: the first server waits for the second, which waits for its pool.
func chain(b *bench) {
	b.plain()
	b.app(second, "server.tomcat.threads.max=12", "spring.datasource.hikari.maximum-pool-size=3")
	b.crowd(clients, fmt.Sprintf("/http?url=http://127.0.0.1:%d/query?ms=2500", second))
	b.until("the second server is full", func() bool { l := b.ask(second); return l.Verdict.Status == "saturated" })
	l := b.ask(second)
	b.want(l.Verdict.Cause == "connection_pool", "the second: %s", l.Verdict.Summary)
	said := l.Verdict.Summary
	l = b.ask(port)
	b.want(l.Verdict.Cause == "downstream" && strings.Contains(l.Verdict.Summary, fmt.Sprint("127.0.0.1:", second)), "the first: %s", l.Verdict.Summary)
	b.row.Truth = "20 threads at a server of 12 threads and 3 connections"
	b.row.Said = "the first: " + l.Verdict.Summary + " The second: " + said
}

// dead: the database ends, and what is at its port answers with RST. Which of them fail
// cannot be seen, as nothing of them stays; nobody is blamed who is not at fault.
func dead(b *bench) {
	database := b.postgres()
	b.app(port, "spring.datasource.hikari.maximum-pool-size=3")
	b.must(b.get(port, "/query?ms=1"))
	b.must(database.Process.Signal(syscall.SIGKILL))
	_, _ = database.Process.Wait()
	b.crowd(clients, "/query?ms=1")
	b.until("the threads wait for a connection", func() bool {
		l := b.ask(port)
		return l.Connections != nil && l.Connections.Waiting >= clients-threads-8
	})
	l := b.ask(port)
	b.row.Truth = "20 threads wait for a pool that can open no connection"
	b.want(!strings.Contains(advised(l), "raise "), "the advice is %q", advised(l))
	b.wants(l, "waiting_inside", "No connection to "+orders+" (orders) is open")
}

// virtual: the threads cannot be read, and there is no limit to them: the pool's
// connections and the requests that wait are seen.
func virtual(b *bench) {
	b.java = []string{modern}
	b.plain("spring.threads.virtual.enabled=true", "spring.datasource.hikari.maximum-pool-size=3")
	b.crowd(clients, "/query?ms=2500")
	b.until("3 queries", func() bool { return b.active() == 3 })
	time.Sleep(3 * time.Second)
	var seen []int
	blamed := 0
	for range 10 {
		l := b.ask(port)
		for _, p := range l.Process.Downstream {
			if p.Peer != orders {
				continue
			}
			seen = append(seen, p.InFlight)
			b.want(p.InFlight+p.Unknown == 3, "%+v", p)
			b.want(p.InFlight > 0 || l.Verdict.Cause == "", "nothing is known to be in flight: %s", l.Verdict.Summary)
		}
		if l.Verdict.Cause == "connection_pool" {
			blamed++
			b.want(strings.Contains(advised(l), "spring.datasource.hikari.maximum-pool-size from 3"), "the advice is %q", advised(l))
		}
	}
	b.want(blamed >= 5, "the pool was the cause in %d of ten", blamed)
	b.row.Truth = fmt.Sprintf("%d requests in service, 3 in flight by the backend's log, said %v, the others may be; the cause in %d of ten", clients, seen, blamed)
	b.flags = []string{"--thread-dump"}
	l := b.ask(port)
	var dumped []string
	if s := l.Process.Stacks; s != nil {
		for _, g := range s.Groups {
			if g.Worker {
				dumped = append(dumped, fmt.Sprintf("%d × %s ← %s", g.Threads, g.Library, g.Application))
			}
		}
	}
	b.row.Said += " The JVM: " + strings.Join(dumped, ", ")
	b.want(strings.Contains(strings.Join(dumped, " "), "HikariDataSource.getConnection ← waiting.Handlers.query"), "the virtual threads are not in the thread dump")
}

// multiplexed: how many requests one connection carries cannot be seen. An agent that has
// seen the server at rest blames the peer; a snapshot knows of the one connection at
// most that it was asked meanwhile.
func multiplexed(b *bench) {
	b.plain()
	b.app(second, "server.http2.enabled=true", "server.tomcat.threads.max=100")
	address := fmt.Sprint("127.0.0.1:", second)
	b.must(b.get(port, "/http2?url=http://"+address+"/hello"))
	agent, err := crowd.StartAgent(b.ctx, b.dir+"/tcpdiag", "--port", fmt.Sprint(port))
	b.must(err)
	b.ends = append(b.ends, agent.Stop)
	b.until("the server was seen at rest", func() bool {
		p := b.said(agent).Process
		return p != nil && slices.ContainsFunc(p.Downstream, func(p api.Peer) bool { return p.Peer == address && p.InFlightAtRest != nil })
	})
	b.crowd(clients, "/http2?url=http://"+address+"/sleep?ms=2500")
	b.until("the agent blames it", func() bool { return b.said(agent).Verdict.Cause == "downstream" })
	const shared = "equests that share 1 connection to "
	for range 10 {
		l := b.ask(port)
		b.want(l.Verdict.Cause == "max_threads" && !strings.Contains(advised(l), "raise "), "%s %s", l.Verdict.Summary, advised(l))
		l = b.said(agent)
		b.want(strings.Contains(l.Verdict.Summary, shared+address+" are in flight") && strings.Contains(l.Verdict.Summary, "how many threads wait for them cannot be seen"), "%s", l.Verdict.Summary)
		b.want(!strings.Contains(advised(l), "raise "), "the agent's advice is %q", advised(l))
	}
	b.row.Truth = "20 requests on one connection; ten looks by an agent and by snapshots"
}
