package waits

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// waitCase is one thing that threads can wait for.
type waitCase struct {
	name string
	run  func(*stage)
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
		{"G1 HikariCP's default of 10, queries of 2.5 s", func(s *stage) { s.pool(10) }},
		{"G1 a pool of 3, queries of 2.5 s", func(s *stage) { s.pool(3, "spring.datasource.hikari.maximum-pool-size=3") }},
		{"G1 a lock held on a table, Spring Data", lockedTable},
		{"G1 60 clients at once, a pool of 3: what was said of a larger one, and what came of it", predicted},
		{"G1 the advice applied: the pool; and what was not advised: the threads", advice},
		{"plan: 60 clients at once, 20 threads, 3 connections, 2.5 s", func(s *stage) { s.planned(3) }},
		{"plan: the same with 10 connections", func(s *stage) { s.planned(10) }},
		{"G2 a connection for each thread, answers after 2.5 s", func(s *stage) {
			slow := s.backend(2500 * time.Millisecond)
			s.plain()
			s.come(clients, "/socket?to="+slow.Address)
			s.peer(slow.Address, "downstream", threads, func() int { return int(slow.Waiting.Load()) })
		}},
		{"G3 connects that nobody answers", hanging},
		{"G3 a database that has died: connects are refused", dead},
		{"G4 a lock", func(s *stage) { s.nobody("/lock?ms=500", "`synchronized` around 500 ms", "lock, a pool or a timer") }},
		{"G4 a timer", func(s *stage) {
			s.nobody("/sleep?ms=2500", "`Thread.sleep` of 2.5 s", "lock, a pool, a timer or the rest of a request")
		}},
		{"G4 the CPU", func(s *stage) {
			s.nobody("/burn?ms=500", "20 threads that compute, on as many processors as the machine has", "run")
		}},
		{"G5 two backends, one of them slow", func(s *stage) {
			slow, fast := s.backend(2500*time.Millisecond), s.backend(time.Millisecond)
			s.plain()
			s.come(clients, "/socket?to="+slow.Address)
			s.come(2, "/socket?to="+fast.Address)
			l := s.peer(slow.Address, "downstream", threads-2, func() int { return int(slow.Waiting.Load()) })
			s.silent(l, fast.Address)
		}},
		{"G6 a subscription and a long poll, beside nothing, beside a timer, beside a slow backend", decoy},
		{"G7 a pool of 3 and TLS to the database", func(s *stage) {
			s.encrypted()
			s.app(port, "spring.datasource.url=jdbc:postgresql://"+orders+"/orders?sslmode=require", "spring.datasource.hikari.maximum-pool-size=3")
			s.come(clients, "/query?ms=2500")
			s.peer(orders, "connection_pool", 3, s.active)
		}},
		{"G7 a pool of 3 and virtual threads, Java 25", virtual},
		{"G7 a backend over HTTP/2: one connection for all requests", multiplexed},
		{"G8 a pool of 3 seen by another user", nobodySees},
		{"G8 a pool of 3 in another container, seen from the machine's own namespaces", func(s *stage) {
			s.java = []string{"unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "java"}
			s.Outside = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", os.Getppid())}
			s.pool(3, "spring.datasource.hikari.maximum-pool-size=3")
		}},
		{"Redis stopped, Jedis with a pool of 8", func(s *stage) {
			s.stoppedRedis("spring.data.redis.client-type=jedis", "spring.data.redis.jedis.pool.max-active=8")
			s.peer("127.0.0.1:16379", "connection_pool", 8, func() int { return 8 })
		}},
		{"Redis stopped, Lettuce: one connection for all threads", func(s *stage) {
			s.stoppedRedis()
			s.Until("requests wait", func() bool { return s.ask(port).Connections.Waiting >= clients-threads-8 })
			l := s.ask(port)
			s.Row.Truth = "20 threads wait for one connection, which another thread reads"
			s.wants(l, "possible_downstream", "127.0.0.1:16379 (redis)")
		}},
		{"an HTTP service that is a saturated Tomcat, which waits for its database's pool", chain},
	}
}

// plain is the application without load on its database.
func (s *stage) plain(settings ...string) {
	s.postgres()
	s.app(port, settings...)
}

// pool has the clients query the database.
func (s *stage) pool(size int, settings ...string) {
	s.plain(settings...)
	s.come(clients, "/query?ms=2500")
	l := s.peer(orders, "connection_pool", size, s.active)
	s.Holds(strings.Contains(advised(l), fmt.Sprintf("spring.datasource.hikari.maximum-pool-size from %d to %d", size, threads)), "the advice is %q", advised(l))
}

// nobodySees: who may read neither descriptors nor threads blames nobody, and is told
// what is missing.
func nobodySees(s *stage) {
	s.pool(3, "spring.datasource.hikari.maximum-pool-size=3")
	l, all := s.askAs([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, port)
	var missing []string
	for _, u := range all.Unavailable {
		missing = append(missing, u.What)
	}
	s.Row.Truth = "as nobody: unavailable are " + strings.Join(missing, ", ")
	s.Holds(l.Verdict.Cause != "downstream", "%s", l.Verdict.Summary)
	s.Holds(l.Process == nil || l.Process.Workers == nil, "threads of another user were read")
	s.Holds(len(missing) > 0, "nothing is said to be missing")
}

func lockedTable(s *stage) {
	s.plain()
	s.Must(s.get(port, "/order"))
	s.lock()
	s.come(clients, "/order")
	s.peer(orders, "connection_pool", 10, s.active)
}

// advice measures what is served as it is, with the pool raised as advised, and with
// more threads, which were not advised.
func advice(s *stage) {
	s.postgres()
	const query = "/query?ms=500"
	measure := func(settings ...string) float64 {
		before := s.Mark()
		s.app(port, settings...)
		c := s.come(clients, query)
		s.Until("requests are served", func() bool { return c.Served.Load() > clients })
		rate := c.Rate(20 * time.Second)
		if l := s.ask(port); len(settings) == 1 {
			s.Holds(l.Verdict.Cause == "connection_pool", "%s", l.Verdict.Summary)
			s.Holds(!strings.Contains(advised(l), "raise server.tomcat.threads.max"), "threads are advised: %s", advised(l))
		}
		said := s.Row.Said
		s.UnwindTo(before)
		s.Row.Said = said
		return rate
	}
	as := measure("spring.datasource.hikari.maximum-pool-size=3")
	said := s.Row.Said
	more := measure("spring.datasource.hikari.maximum-pool-size=3", "server.tomcat.threads.max=40")
	pool := measure("spring.datasource.hikari.maximum-pool-size=20", "server.tomcat.threads.max=20")
	s.Row.Said = said
	s.Row.Truth = fmt.Sprintf("3 connections and 20 threads serve %.1f requests a second; 40 threads %.1f (× %.2f); 20 connections %.1f (× %.2f, said: up to 6.7)", as, more, more/as, pool, pool/as)
	s.Holds(math.Abs(more/as-1) < 0.1, "more threads changed what is served")
	s.Holds(pool/as > 0.9*20/3, "the pool did not bring what was said")
}

// predicted has an agent say what a larger pool would do, enlarges it, and lets the same
// clients come again.
func predicted(s *stage) {
	// HikariCP serves waiting threads in no order: one that waits for 30 s, its default, fails.
	settings := func(size int) []string {
		return []string{fmt.Sprint("spring.datasource.hikari.maximum-pool-size=", size), "spring.datasource.hikari.connection-timeout=120000"}
	}
	s.postgres()
	before := s.Mark()
	s.app(port, settings(3)...)
	agent, err := rig.StartAgent(s.Ctx, s.Tcpdiag(), "--port", fmt.Sprint(port))
	s.Must(err)
	s.AtEnd(agent.Kill)
	s.Wait(3 * time.Second)
	var step api.Step
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			for _, st := range s.said(agent).Verdict.Answer.Do {
				if st.Effect != "" && step.Effect == "" {
					step = st
				}
			}
		}
	})
	is := s.atOnce(clients)
	close(stop)
	watching.Wait()
	s.UnwindTo(before)
	s.Holds(step.Effect != "", "nothing was predicted")
	size, _ := strconv.Atoi(step.To)
	if size == 0 {
		return
	}
	s.app(port, settings(size)...)
	then := s.atOnce(clients)
	s.Row.Said = fmt.Sprintf("%s %s → %s: %s", step.Setting, step.From, step.To, step.Effect)
	s.Row.Truth = fmt.Sprintf("with 3 connections the slowest waits %.1f s, with %d %.1f s", is.Seconds(), size, then.Seconds())
	var said [2]float64
	_, err = fmt.Sscanf(regexp.MustCompile(`[\d.]+ s`).FindAllString(step.Effect, 2)[0], "%f", &said[0])
	s.Must(err)
	s.Holds(math.Abs(said[0]/then.Seconds()-1) <= 0.2, "more than 20 %% from what came")
}

// atOnce lets clients loose, and returns how long the slowest waited.
func (s *stage) atOnce(n int) time.Duration {
	began := time.Now()
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range n {
		wg.Go(func() {
			if s.get(port, "/query?ms=2500") != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	s.Holds(failed.Load() == 0, "%d failed", failed.Load())
	return time.Since(began)
}

// planned lets clients loose at once, and compares when the last is answered with
// what plan says.
func (s *stage) planned(connections int) {
	// HikariCP serves waiting threads in no order: one that waits for 30 s, its default, fails.
	s.plain(fmt.Sprint("spring.datasource.hikari.maximum-pool-size=", connections), "spring.datasource.hikari.connection-timeout=120000")
	warm := s.come(clients, "/query?ms=20")
	s.Until("the server is warm", func() bool { return warm.Served.Load() > 20*clients })
	warm.Stop()
	s.Until("the server is idle", func() bool { return s.ask(port).Connections.Accepted == 0 })
	out, err := exec.CommandContext(s.Ctx, s.Tcpdiag(), "plan", "--requests", fmt.Sprint(clients), "--service-time", "1ms",
		"--backend-connections", fmt.Sprint(connections), "--backend-time", "2.5s", "--threads", fmt.Sprint(threads), "--client-timeout", "0", "-o", "json").Output()
	s.Must(err)
	var plan plandoc.Plan
	s.Must(json.Unmarshal(out, &plan))
	took := s.atOnce(clients).Seconds()
	s.Row.Truth = fmt.Sprintf("the last is answered after %.2f s, %d of %d", took, clients, clients)
	s.Row.Said = fmt.Sprintf("%.2f s (%+.1f %%). %s", plan.ClientsDoneSeconds, 100*(plan.ClientsDoneSeconds/took-1), plan.Summary)
	s.Holds(math.Abs(plan.ClientsDoneSeconds/took-1) <= 0.02, "more than 2 %% apart")
}

// hanging: a listener whose queue is full drops the packets of who connects.
func hanging(s *stage) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	s.Must(err)
	s.AtEnd(func() { _ = syscall.Close(fd) })
	s.Must(syscall.Bind(fd, &syscall.SockaddrInet4{Port: 15999, Addr: [4]byte{127, 0, 0, 1}}))
	s.Must(syscall.Listen(fd, 0))
	c, err := (&net.Dialer{}).DialContext(s.Ctx, "tcp", "127.0.0.1:15999")
	s.Must(err)
	s.AtEnd(func() { _ = c.Close() })
	s.plain()
	s.come(clients, "/socket?to=127.0.0.1:15999")
	s.Until("the connects", func() bool {
		l := s.ask(port)
		for _, p := range l.Process.Downstream {
			if p.Peer == "127.0.0.1:15999" && p.Connecting == threads {
				return true
			}
		}
		return false
	})
	l := s.ask(port)
	s.Row.Truth = "20 threads connect to a listener whose queue is full"
	s.Holds(l.Verdict.Cause == "downstream" && strings.Contains(l.Verdict.Summary, "for a connection to 127.0.0.1:15999"), "%s", l.Verdict.Summary)
}

func (s *stage) stoppedRedis(settings ...string) {
	r := s.redis()
	s.plain(settings...)
	s.Must(s.get(port, "/redis"))
	s.Must(r.Process.Signal(syscall.SIGSTOP))
	s.come(clients, "/redis")
}

// chain: the first server waits for the second, which waits for its pool.
func chain(s *stage) {
	s.plain()
	s.app(second, "server.tomcat.threads.max=12", "spring.datasource.hikari.maximum-pool-size=3")
	s.come(clients, fmt.Sprintf("/http?url=http://127.0.0.1:%d/query?ms=2500", second))
	s.Until("the second server is full", func() bool { l := s.ask(second); return l.Verdict.Status == "saturated" })
	l := s.ask(second)
	s.Holds(l.Verdict.Cause == "connection_pool", "the second: %s", l.Verdict.Summary)
	said := l.Verdict.Summary
	l = s.ask(port)
	s.Holds(l.Verdict.Cause == "downstream" && strings.Contains(l.Verdict.Summary, fmt.Sprint("127.0.0.1:", second)), "the first: %s", l.Verdict.Summary)
	s.Row.Truth = "20 threads at a server of 12 threads and 3 connections"
	s.Row.Said = "the first: " + l.Verdict.Summary + " The second: " + said
}

// dead: the database ends, and what is at its port answers with RST. Which of them fail
// cannot be seen, as nothing of them stays; nobody is blamed who is not at fault.
func dead(s *stage) {
	database := s.postgres()
	s.app(port, "spring.datasource.hikari.maximum-pool-size=3")
	s.Must(s.get(port, "/query?ms=1"))
	s.Must(database.Process.Signal(syscall.SIGKILL))
	_, _ = database.Process.Wait()
	s.come(clients, "/query?ms=1")
	s.Until("the threads wait for a connection", func() bool {
		l := s.ask(port)
		return l.Connections != nil && l.Connections.Waiting >= clients-threads-8
	})
	l := s.ask(port)
	s.Row.Truth = "20 threads wait for a pool that can open no connection"
	s.Holds(!strings.Contains(advised(l), "raise "), "the advice is %q", advised(l))
	s.wants(l, "waiting_inside", "No connection to "+orders+" (orders) is open")
}

// virtual: the threads cannot be read, and there is no limit to them: the pool's
// connections and the requests that wait are seen.
func virtual(s *stage) {
	s.java = []string{modern}
	s.plain("spring.threads.virtual.enabled=true", "spring.datasource.hikari.maximum-pool-size=3")
	s.come(clients, "/query?ms=2500")
	s.Until("3 queries", func() bool { return s.active() == 3 })
	time.Sleep(3 * time.Second)
	var seen []int
	blamed := 0
	for range 10 {
		l := s.ask(port)
		for _, p := range l.Process.Downstream {
			if p.Peer != orders {
				continue
			}
			seen = append(seen, p.InFlight)
			s.Holds(p.InFlight+p.Unknown == 3, "%+v", p)
			s.Holds(p.InFlight > 0 || l.Verdict.Cause == "" || strings.Contains(l.Verdict.Summary, "(As of "), "nothing is known to be in flight: %s", l.Verdict.Summary)
		}
		if l.Verdict.Cause == "connection_pool" {
			blamed++
			s.Holds(strings.Contains(advised(l), "spring.datasource.hikari.maximum-pool-size from 3"), "the advice is %q", advised(l))
		}
	}
	s.Holds(blamed >= 5, "the pool was the cause in %d of ten", blamed)
	s.Row.Truth = fmt.Sprintf("%d requests in service, 3 in flight by the backend's log, said %v, the others may be; the cause in %d of ten", clients, seen, blamed)
	s.flags = []string{"--thread-dump"}
	l := s.ask(port)
	var dumped []string
	if s := l.Process.Stacks; s != nil {
		for _, g := range s.Groups {
			if g.Worker {
				dumped = append(dumped, fmt.Sprintf("%d × %s ← %s", g.Threads, g.Library, g.Application))
			}
		}
	}
	s.Row.Said += " The JVM: " + strings.Join(dumped, ", ")
	s.Holds(strings.Contains(strings.Join(dumped, " "), "HikariDataSource.getConnection ← waiting.Handlers.query"), "the virtual threads are not in the thread dump")
}

// multiplexed: how many requests one connection carries cannot be seen. An agent that has
// seen the server at rest blames the peer; a snapshot knows of the one connection at
// most that it was asked meanwhile.
func multiplexed(s *stage) {
	s.plain()
	s.app(second, "server.http2.enabled=true", "server.tomcat.threads.max=100")
	address := fmt.Sprint("127.0.0.1:", second)
	s.Must(s.get(port, "/http2?url=http://"+address+"/hello"))
	agent, err := rig.StartAgent(s.Ctx, s.Tcpdiag(), "--port", fmt.Sprint(port))
	s.Must(err)
	s.AtEnd(agent.Kill)
	s.Until("the server was seen at rest", func() bool {
		p := s.said(agent).Process
		return p != nil && slices.ContainsFunc(p.Downstream, func(p api.Peer) bool { return p.Peer == address && p.InFlightAtRest != nil })
	})
	s.come(clients, "/http2?url=http://"+address+"/sleep?ms=2500")
	s.Until("the agent blames it", func() bool { return s.said(agent).Verdict.Cause == "downstream" })
	const shared = "equests that share 1 connection to "
	for range 10 {
		l := s.ask(port)
		s.Holds(l.Verdict.Cause == "max_threads" && !strings.Contains(advised(l), "raise "), "%s %s", l.Verdict.Summary, advised(l))
		l = s.said(agent)
		s.Holds(strings.Contains(l.Verdict.Summary, shared+address+" are in flight") && strings.Contains(l.Verdict.Summary, "how many threads wait for them cannot be seen"), "%s", l.Verdict.Summary)
		s.Holds(!strings.Contains(advised(l), "raise "), "the agent's advice is %q", advised(l))
	}
	s.Row.Truth = "20 requests on one connection; ten looks by an agent and by snapshots"
}
