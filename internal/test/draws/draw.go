package draws

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// choice is one of several with its weight. The weights were written down before the
// first run.
type choice struct {
	name   string
	weight int
}

func pick(r *rand.Rand, choices ...choice) string {
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	n := r.IntN(sum)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.name
		}
	}
	return ""
}

// Tomcat's own limits, where nothing is set.
const (
	defaultThreads     = 200
	defaultConnections = 8192
	defaultBacklog     = 100
)

// server is what several draws in a row have in common, so that it is started once.
type server struct {
	kind, version string // boot or tomcat
	protocol      string // nio, nio2, tls, h2c, ajp
	java          string // 17 or 25
	virtual       bool
	where         string // in which way the limits are set
	user          string // root, or an id of its own

	threads, connections, backlog int

	pool  int  // connections of its pool to a backend
	named bool // by Spring's properties
}

// perServer is how many draws a server has.
const perServer = 4

func newServer(r *rand.Rand) server {
	s := server{java: "17", user: pick(r, choice{"root", 3}, choice{"app", 7})}
	s.kind, s.version, _ = strings.Cut(pick(r,
		choice{"boot 2.7.18", 2}, choice{"boot 3.5.16", 5}, choice{"boot 4.0.9", 4},
		choice{"tomcat 8.5.100", 1}, choice{"tomcat 9.0.117", 3}, choice{"tomcat 10.1.59", 3}, choice{"tomcat 11.0.24", 2}), " ")
	if s.kind == "boot" {
		s.protocol = pick(r, choice{"nio", 7}, choice{"tls", 2}, choice{"h2c", 1})
		s.where = pick(r, choice{"arguments", 2}, choice{"environment", 3}, choice{"properties file", 3}, choice{"YAML file", 2}, choice{"-D", 1}, choice{"SPRING_APPLICATION_JSON", 1})
		if s.version != "2.7.18" && r.IntN(3) == 0 {
			s.java, s.virtual = "25", true
		}
	} else {
		s.protocol = pick(r, choice{"nio", 6}, choice{"nio2", 2}, choice{"tls", 2}, choice{"ajp", 1})
		s.where = pick(r, choice{"attributes", 5}, choice{"placeholders", 2}, choice{"an Executor", 3})
	}
	s.threads, s.connections, s.backlog = 2+r.IntN(11), defaultConnections, defaultBacklog
	if r.IntN(10) == 0 {
		s.threads = defaultThreads
	}
	if r.IntN(4) > 0 {
		s.connections = min(s.threads, 40) + 2 + r.IntN(40)
	}
	if r.IntN(4) > 0 {
		s.backlog = 2 + r.IntN(19)
	}
	s.pool, s.named = 2, r.IntN(2) == 0 && s.kind == "boot"
	if most := min(s.threads, 40) - 2; most > 2 {
		s.pool += r.IntN(most - 1)
	}
	return s
}

func (s server) String() string {
	text := fmt.Sprintf("%s %s, %s, Java %s, %d threads, %d connections, backlog %d by %s, as %s", s.kind, s.version, s.protocol, s.java, s.threads, s.connections, s.backlog, s.where, s.user)
	if s.virtual {
		text += ", virtual threads"
	}
	return text
}

// draw is one of them.
type draw struct {
	seed   uint64
	number int
	server server

	handler string
	ms      int // that a request takes

	users          int // that ask again as soon as they have an answer, or a moment after they got none
	connect, reply time.Duration
	requests       int  // on one connection
	halfClose      bool // after the request
	proxy          bool // in front
	checks         bool // a balancer's, beside the users
	aim            string

	fault  string
	viewer string // root, app (the server's own ids, as a sidecar is), nobody

	tried bool // the first step of the answer that changes a setting is taken, and the same load comes again
}

// lastWithoutTrials is the last seed that was drawn before advice was tried and connection
// tracking was filled: what it and those before it stand for stays.
const lastWithoutTrials = 26300

// newDraw is number N of a seed, whatever the others are.
func newDraw(seed uint64, number int) draw {
	d := draw{seed: seed, number: number}
	d.server = newServer(rand.New(rand.NewPCG(seed, uint64(number/perServer)|1<<40)))
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	d.handler = pick(r, choice{"sleep", 6}, choice{"lock", 2}, choice{"pool", 5}, choice{"peer", 5}, choice{"file", 1}, choice{"gc", 1}, choice{"burn", 1},
		choice{"async", 2}, choice{"stream", 2}, choice{"upload", 2}, choice{"idle", 3}, choice{"half", 1})
	if d.server.protocol != "nio" && d.server.protocol != "nio2" && d.server.protocol != "tls" && slices.Contains([]string{"upload", "idle", "half", "stream"}, d.handler) {
		d.handler = "sleep" // what these clients send is HTTP/1
	}
	d.ms = 300 + 100*r.IntN(13)
	switch d.handler {
	case "lock":
		d.ms = 50 + 10*r.IntN(16)
	case "burn":
		d.ms = 200
	}
	d.aim = pick(r, choice{"calm", 5}, choice{"threads", 7}, choice{"connections", 4}, choice{"full", 4})
	d.users = d.usersFor(r)
	d.connect = []time.Duration{900 * time.Millisecond, 2500 * time.Millisecond}[r.IntN(2)]
	d.reply = []time.Duration{2 * time.Second, 4 * time.Second}[r.IntN(2)]
	d.requests = []int{1, 1, 1, 5}[r.IntN(4)]
	d.halfClose = r.IntN(10) == 0
	d.proxy = r.IntN(8) == 0 && (d.server.protocol == "nio" || d.server.protocol == "nio2") && d.handler != "idle" && d.handler != "half"
	d.checks = r.IntN(5) == 0
	d.fault = pick(r, faults(seed)...)
	d.viewer = pick(r, choice{"root", 6}, choice{"app", 3}, choice{"nobody", 2})
	d.tried = seed > lastWithoutTrials && r.IntN(3) == 0
	return d.possible()
}

// faults are with their weights. Seeds 1 to 3 were drawn before connections were limited by a
// rule, and stay what they are. The limit of connection tracking is the host's
// (net.netfilter.nf_conntrack_max): a namespace of its own is filled up to it.
func faults(seed uint64) []choice {
	all := []choice{
		{"", 60},
		{"pause", 5},
		{"filter that counts", 3},
		{"filter without a counter", 2},
		{"filter of every second SYN", 2},
		{"filter that rejects", 3},
		{"quota", 3},
		{"descriptors", 4},
		{"processes", 3},
		{"second instance", 4},
		{"restart", 4},
		{"dead acceptor", 2},
		{"dead poller", 3},
	}
	if seed > 3 {
		all = append(all, choice{"filter of more than 5 connections", 3})
	}
	if seed > lastWithoutTrials {
		all = append(all, choice{"conntrack full", 3})
	}
	return all
}

// usersFor is how many users the aim takes.
func (d draw) usersFor(r *rand.Rand) int {
	s := d.server
	atOnce := s.threads // that a handler works at
	switch d.handler {
	case "pool":
		atOnce = min(s.pool, s.threads)
	case "lock", "burn", "gc":
		atOnce = 2
	case "idle", "half", "async":
		atOnce = min(s.connections, 60)
	}
	calm := max(1, min(atOnce/2, 40))
	const most = 400 // that this machine can have
	switch {
	case d.aim == "full" && s.connections+s.backlog+12 < most:
		return s.connections + s.backlog + 6 + r.IntN(30)
	case (d.aim == "full" || d.aim == "connections") && s.connections+s.backlog < most:
		return s.connections + 2 + r.IntN(max(1, s.backlog-1))
	case d.aim == "calm":
		return calm
	}
	n := s.threads + s.threads/2 + 3 + r.IntN(20)
	if s.connections > n || s.connections < s.threads {
		return n
	}
	return s.connections
}

// possible changes what this server cannot have.
func (d draw) possible() draw {
	dead := strings.HasPrefix(d.fault, "dead ")
	switch {
	case dead && (d.server.java != "17" || d.server.protocol == "nio2"), // Thread.stop is no longer there; no such thread
		d.fault == "processes" && d.server.user == "root", // whom RLIMIT_NPROC does not bind
		d.fault == "processes" && d.server.virtual,
		d.fault == "conntrack full" && d.server.protocol == "ajp": // which listens on the loopback device
		d.fault = ""
	}
	if d.fault == "restart" || d.fault == "conntrack full" || dead {
		d.proxy = false
	}
	d.tried = d.tried && d.fault == ""
	if d.viewer == "app" && d.server.user == "root" {
		d.viewer = "root"
	}
	if d.requests > 1 || d.handler == "half" || d.handler == "idle" || d.server.protocol == "tls" {
		d.halfClose = false
	}
	if d.server.protocol == "ajp" || d.server.protocol == "h2c" {
		d.halfClose, d.requests = false, 1
	}
	return d
}

func (d draw) String() string {
	text := fmt.Sprintf("%s; %d users (%s) ask for %s", d.server, d.users, d.aim, d.handler)
	switch d.handler {
	case "pool":
		name := "without a name"
		if d.server.named {
			name = "whose name is configured"
		}
		text += fmt.Sprintf(" of %d %s, %d ms", d.server.pool, name, d.ms)
	case "idle", "half", "file":
	default:
		text += fmt.Sprintf(" of %d ms", d.ms)
	}
	text += fmt.Sprintf(", patience %s and %s", d.connect, d.reply)
	for _, one := range []struct {
		so   bool
		what string
	}{
		{d.requests > 1, fmt.Sprintf("%d requests a connection", d.requests)},
		{d.halfClose, "half-closing"},
		{d.proxy, "through a proxy"},
		{d.checks, "and a balancer's checks"},
		{d.fault != "", "fault: " + d.fault},
		{d.tried, "and again with the advice"},
	} {
		if one.so {
			text += ", " + one.what
		}
	}
	return text + "; asked by " + d.viewer
}

// inFront reports whether the clients' packets are lost before the listener.
func (d draw) inFront() bool {
	return strings.HasPrefix(d.fault, "filter") || d.fault == "conntrack full"
}

// clients are of which kind they are.
func (d draw) clients() string {
	switch {
	case d.proxy:
		return "through a proxy"
	case d.halfClose:
		return "half-closing"
	case d.requests > 1:
		return "keep-alive"
	case d.handler == "idle" || d.handler == "half" || d.handler == "upload":
		return "slow or idle"
	}
	return "a connection for each request"
}
