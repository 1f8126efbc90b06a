package draws

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// asked is the interval of the snapshot; it looks on for as much longer where none of the clients
// has had an answer.
const (
	asked  = 2 * time.Second
	longer = 5 * time.Second
)

// observed is what others than tcpdiag say of the time in which it was asked.
type observed struct {
	busy, connections int  // most, of the server's MBeans
	allBusy           bool // no reading found a thread that was free
	queue             int  // most, of the kernel's accept queue
	failed            int  // clients that got no answer in it, by their own account
	ever              int  // and from the beginning of the draw, where known
	known             bool
	accepting         bool // an acceptor thread is there, or needs not be
	reading           bool // so is a poller
	throttled         bool // the cgroup was, by its own account
	// starved is how many threads of the process waited for a CPU, on average, by their own
	// schedstat; free: not all connections were taken all the time.
	starved float64
	free    bool
	// overflows are those of the accept queues of the namespace, in all of the draw (ListenOverflows).
	overflows  int
	outOfFiles bool
}

// trouble is whether somebody waits or fails.
func (o observed) trouble(s server) bool {
	full := o.connections >= s.connections && o.queue > 0
	if s.virtual { // no request waits for a thread, and a moment in the queue is none
		return o.failed > 0 || full
	}
	return o.failed > 0 || o.queue > 0 || o.busy >= s.threads
}

// causes are those that may be said: what the draw's arithmetic leads to, of what was
// observed to be at its limit. "" is among them where nothing is the matter.
func (d draw) causes(o observed) []string {
	s := d.server
	var all []string
	add := func(ok bool, names ...string) {
		if ok {
			all = append(all, names...)
		}
	}
	full := o.connections >= s.connections
	busy := !s.virtual && o.busy >= s.threads
	switch {
	case d.fault == "pause":
		return []string{"jvm_pause"}
	case d.inFront():
		add(true, "before_listener")
	case d.fault == "descriptors":
		add(o.outOfFiles, "open_files")
	case d.fault == "quota":
		add(o.throttled, "cpu_throttled", "cpu_saturated")
	case d.fault == "restart":
		add(true, "no_listener", "listener_closed")
	case !o.accepting && !o.reading:
		add(true, "not_accepting", "not_reading")
	case !o.accepting:
		add(true, "not_accepting")
	case !o.reading:
		add(true, "not_reading")
	case d.fault == "dead acceptor": // it lives on, but nobody reads the connection that it had in hand
		add(true, "")
	}
	add(full && o.queue > 0, "max_connections")
	add(full && o.queue > 0 && d.handler == "idle", "keep_alive_idle")
	add(busy, d.inner()...)
	add(s.virtual && o.trouble(s), d.behind()...)
	add(d.handler == "gc", "jvm_pause")
	add(d.handler == "gc" || d.handler == "burn", "cpu_saturated")
	add((o.queue > s.backlog || o.overflows > 0) && o.free && o.accepting, "slow_accept")
	add(o.starved >= starvedFrom && o.free, "cpu_saturated")
	add(busy && 2*o.starved >= float64(s.threads), "cpu_saturated")             // as many as half of the threads, by the process's own account
	add(s.virtual && o.starved >= float64(runtime.NumCPU())/2, "cpu_saturated") // the carriers, which are as many as CPUs
	add(len(all) == 0 || !o.trouble(s) || d.handler == "half", "")              // who sends half a request has no answer
	slices.Sort(all)
	return slices.Compact(all)
}

// starvedFrom is how many threads that wait for a CPU may hold up all others.
const starvedFrom = .5

// inner is why all threads are busy.
func (d draw) inner() []string {
	if b := d.behind(); b != nil {
		return b
	}
	return []string{"max_threads"}
}

// behind is what requests wait for outside of the process.
func (d draw) behind() []string {
	switch {
	case d.handler == "peer":
		return []string{"downstream"}
	case d.handler == "pool" && 2*d.server.pool >= d.server.threads && !d.server.virtual: // half of them have one to wait for
		return []string{"downstream", "connection_pool"}
	case d.handler == "pool":
		return []string{"connection_pool"}
	}
	return nil
}

// outer are causes that are no error where the inner one could not be seen, if what was
// missing is said: the reader's rights, or the protocol, hide it.
func (d draw) outer(o observed) []string {
	all := []string{"", "accept_queue"}
	if !d.server.virtual && o.busy >= d.server.threads {
		all = append(all, "max_threads")
	}
	if o.connections >= d.server.connections && o.queue > 0 {
		all = append(all, "max_connections")
	}
	return all
}

// countable reports whether each of the clients' own attempts is a connection to the
// server, and its first byte an answer.
func (d draw) countable() bool { return !d.proxy }

// hidden: its first bytes are no answer, and the kernel sees no requests.
func (s server) hidden() bool { return s.protocol == "tls" || s.protocol == "h2c" }

func (d draw) answersCountable() bool {
	p := d.server.protocol
	return d.countable() && (p == "nio" || p == "nio2") && d.handler != "half" && !d.halfClose
}

// verdicts of a judgement.
const (
	right     = "right"
	unknown   = "unknown, and says so"
	undecided = "undecided"
	wrong     = "wrong"
)

// said is what tcpdiag says.
type said struct {
	status, cause, summary string
	missing                []string // what could not be read, and why, by what it says
	first                  step     // of its answer that changes a setting
	open                   int      // clients of which it is not decided yet what became of them
}

// judge compares the two.
func (d draw) judge(o observed, s said) (result, why string) {
	may := d.causes(o)
	switch {
	case o.failed > 1 && s.status == "ok" && len(s.missing) > 0 && d.viewer != "root":
		return unknown, "ok for whom no handshakes are read"
	case o.failed > 1 && s.status == "ok" && len(s.missing) > 0 && d.server.hidden():
		return unknown, "missing is " + some(s.missing)
	case o.failed > 1 && s.status == "ok" && d.reply > asked && slices.Contains(s.missing, "clients_before_unknown"):
		return unknown, "those that wait for longer than a snapshot lasts, and it says so"
	case o.failed > 1 && s.status == "ok":
		return wrong, "ok while clients fail"
	case d.fault == "" && o.known && o.ever == 0 && o.overflows == 0 && s.status == "losing":
		return wrong, "losing while every client is answered and no packet is dropped"
	case d.fault == "" && o.known && o.ever == 0 && strings.Contains(s.summary, "given up by the client"):
		return wrong, "requests are said to be given up, and none was"
	case o.known && o.ever == 0 && o.queue <= d.server.backlog && s.status == "losing" && d.fault != "pause" && !strings.Contains(s.summary, "dropped"):
		return wrong, "losing while every client is answered"
	case s.status == "warning" && o.failed == 0 && 5*o.connections >= 4*d.server.connections && s.cause == "max_connections":
		return right, "" // nearly full
	case s.status == "warning" && s.cause == "open_files" && d.fault == "descriptors":
		return right, "" // so are they: three are left, less what clients take
	case slices.Contains(may, s.cause):
		return right, ""
	case s.cause == "" && s.status == "ok" && o.failed <= 1 && d.fault != "pause" && (!o.allBusy || d.users <= d.server.threads+2):
		return right, "" // somebody waits at times, and nobody fails, whatever could not be read
	case slices.Contains(d.outer(o), s.cause) && len(s.missing) > 0:
		return unknown, "missing is " + some(s.missing)
	case s.cause == "" && s.status != "ok" && (strings.Contains(s.summary, "unknown") || strings.Contains(s.summary, "was not seen")):
		return unknown, "it says that why is unknown"
	}
	return wrong, "the cause is one of " + strings.Join(quoted(may), ", ")
}

// some are the first of what is missing.
func some(missing []string) string {
	const most = 3
	if n := len(missing) - most; n > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(missing[:most], "; "), n)
	}
	return strings.Join(missing, "; ")
}

func quoted(names []string) (out []string) {
	for _, n := range names {
		if n == "" {
			n = "none"
		}
		out = append(out, n)
	}
	return out
}
