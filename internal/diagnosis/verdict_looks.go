package diagnosis

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// pair is two snapshots of one listener, or one (before is nil then).
type pair struct {
	now, before *model.Listener
	first       bool // before will be had, but is not yet
	elapsed     time.Duration
	t           Thresholds
}

// both reports whether every snapshot shows it: a stage that is full in one snapshot
// only is no state yet. The only snapshot there will be is judged from one.
func (p pair) both(shows func(*model.Listener) bool) bool {
	return shows(p.now) && !p.first && (p.before == nil || shows(p.before))
}

func (p pair) either(shows func(*model.Listener) bool) bool {
	return shows(p.now) || p.before != nil && shows(p.before)
}

// total is how much a running total of time grew between the snapshots.
func (p pair) total(of func(*model.Process) *time.Duration) (time.Duration, bool) {
	return grown(p, of)
}

// grown is how much a running total of the process grew between the snapshots.
func grown[N uint64 | time.Duration](p pair, of func(*model.Process) *N) (N, bool) {
	if p.now == nil || p.before == nil || !sameProcess(p.now.Process, p.before.Process) {
		return 0, false
	}
	a, b := of(p.now.Process), of(p.before.Process)
	if a == nil || b == nil || *a < *b {
		return 0, false
	}
	return *a - *b, true
}

// share is the same per time: 1 is always, for run delay one thread on average.
func (p pair) share(of func(*model.Process) *time.Duration) float64 {
	d, ok := p.total(of)
	between := p.between()
	if !ok || between <= 0 {
		return 0
	}
	return d.Seconds() / between.Seconds()
}

// between is the time between the two readings of the process, which have their
// own times where they were not made with the rest.
func (p pair) between() time.Duration {
	if p.now == nil || p.before == nil || p.now.Process == nil || p.before.Process == nil ||
		p.now.Process.At.IsZero() || p.before.Process.At.IsZero() {
		return p.elapsed
	}
	return p.now.Process.At.Sub(p.before.Process.At)
}

func safepointTime(p *model.Process) *time.Duration { return p.SafepointTime }
func cpuThrottled(p *model.Process) *time.Duration  { return p.CPUThrottled }
func cpuUsed(p *model.Process) *time.Duration       { return p.CPUUsed }
func runDelay(p *model.Process) *time.Duration      { return p.RunDelay }

// stopped: by a signal or a debugger, or with its cgroup.
func stopped(l *model.Listener) bool {
	return l != nil && l.Process != nil && (l.Process.Stopped || l.Process.Frozen)
}

// limit says what is known of maxConnections.
type limit int

const (
	limitUnknown limit = iota
	limitNone          // maxConnections=-1
	limitKnown
)

func connectionLimit(l *model.Listener) limit {
	switch {
	case l == nil || l.Connector == nil || l.Connector.MaxConnections == nil:
		return limitUnknown
	case l.Connector.MaxConnections.Value < 0:
		return limitNone
	}
	return limitKnown
}

// uncertainLimit: a maxConnections that is not reached, but may be overruled by
// what could not be read, does not show that there is room inside.
func uncertainLimit(l *model.Listener) bool {
	return connectionLimit(l) != limitUnknown && l.Connector.MaxConnections.Uncertain
}

// slotsUncounted: clients wait in front of slots that seem free, and those of
// connections that clients reset have not been counted, or cannot be: they may be
// all that are missing.
func slotsUncounted(l *model.Listener) bool {
	return l != nil && l.Connections != nil && l.Connections.Reset == nil && connectionLimit(l) == limitKnown && queueWaits(l)
}

// partial: the connections that were counted are too few. They can show a
// limit reached, and never that there is room.
func partial(l *model.Listener) bool {
	return l != nil && l.Connections != nil && l.Connections.Partial
}

// inexact: not each connection was counted. That there is room inside, or how many
// slots are held, is not proved by it.
func inexact(l *model.Listener) bool {
	return l != nil && l.Connections != nil && !l.Connections.Exact()
}

// held is the number of connection slots in use.
func held(l *model.Listener) (int, bool) {
	if l == nil || l.Connections == nil {
		return 0, false
	}
	return l.Connections.Held(), true
}

// atConnectionLimit reports whether Tomcat holds all the connections it may.
func (p pair) atConnectionLimit(l *model.Listener) bool {
	n, ok := held(l)
	if !ok || connectionLimit(l) != limitKnown {
		return false
	}
	return n >= model.ConnectionsReached(l.Connector.MaxConnections.Value)
}

// mostlyIdle reports whether most accepted connections are idle in the snapshots
// that show the limit reached. Unclassified ones are never called idle.
func (p pair) mostlyIdle() bool {
	idle := func(l *model.Listener) bool {
		return model.MostlyIdle(phase(l, model.Idle), l.Connections.Held())
	}
	for _, l := range []*model.Listener{p.now, p.before} {
		if l != nil && p.atConnectionLimit(l) && !idle(l) {
			return false
		}
	}
	return true
}

func phase(l *model.Listener, ph model.Phase) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	return l.Connections.Phases[ph]
}

// queued is the number of connections in the accept queue.
func queued(l *model.Listener) int {
	if l == nil || l.AcceptQueue == nil {
		return 0
	}
	return l.AcceptQueue.Length
}

func queueWaits(l *model.Listener) bool { return queued(l) > 0 }

func queueFull(l *model.Listener) bool {
	return l != nil && l.AcceptQueue != nil && l.AcceptQueue.Full()
}

// waitingRequests are those that no thread has begun to read: of clients that
// are still there, and of those that gave up.
func waitingRequests(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	return l.Connections.Phases[model.Waiting] + l.Connections.Abandoned
}

func virtualThreads(l *model.Listener) bool {
	return l != nil && l.OnVirtualThreads()
}

// maxThreads is the size of the worker pool; virtual threads have none. It is
// not known where more requests are being served than the configuration allows
// threads: it was overruled, by code that sets another executor for example.
func maxThreads(l *model.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.MaxThreads == nil || virtualThreads(l) {
		return 0, false
	}
	n := l.Connector.MaxThreads.Value
	if busy, seen := busyThreads(l); outgrown(l) || seen && l.Connector.PoolThreads == nil && busy > n {
		return 0, false
	}
	return n, n > 0
}

// beside is how many threads may bear a worker's name that are none: those that a
// Tomcat of another version has for itself.
const beside = 2

// outgrown: the connector's own pool has more threads than it may have as configured,
// so that another limit is in force: set by code, or over JMX (setMaxThreads counts at
// once).
func outgrown(l *model.Listener) bool {
	if l == nil || l.Connector == nil || l.Connector.MaxThreads == nil || l.Connector.PoolThreads == nil || l.Connector.Executor != "" {
		return false
	}
	return *l.Connector.PoolThreads > l.Connector.MaxThreads.Value+beside
}

// busyThreads is how many threads have a request in hand, where it is known.
func busyThreads(l *model.Listener) (int, bool) {
	if l == nil {
		return 0, false
	}
	n, known := l.BusyThreads()
	return n, known == model.BusyIsKnown
}

// hidden: requests cannot be distinguished on the connections.
func hidden(l *model.Listener) bool {
	return l != nil && l.Connector != nil && (l.Connector.TLS || l.Connector.HTTP2)
}

// notObservable: how many threads are busy cannot be known from outside, and
// the application was not asked.
func notObservable(l *model.Listener) bool { return hidden(l) && l.Connector.BusyThreads == nil }

// poolAtMax reports whether the pool has all the threads it may have, from the
// thread names. known is false where they cannot be counted.
func poolAtMax(l *model.Listener) (atMax, known bool) {
	most, ok := maxThreads(l)
	if !ok || l.Connector.PoolThreads == nil {
		return false, false
	}
	return *l.Connector.PoolThreads >= most, true
}

// threadsExhausted reports whether requests wait because every thread has one.
// A pool at its maximum alone proves nothing (threads outlive a burst by a
// minute), nor does a waiting request alone (it may be picked up in a
// millisecond): so either the threads are seen busy, or many requests wait.
func (p pair) threadsExhausted(l *model.Listener) bool {
	most, ok := maxThreads(l)
	if !ok {
		return false
	}
	if atMax, known := poolAtMax(l); known && !atMax {
		return false
	}
	waiting := waitingForThread(l)
	if waiting == 0 {
		return false
	}
	busy, seen := busyThreads(l)
	if seen && float64(busy) >= p.t.ThreadsBusy*float64(most) {
		return true
	}
	_, counted := poolAtMax(l)
	return counted && float64(waiting) >= max(2, p.t.ThreadsBacklog*float64(most))
}

// longWaiting is how long clients wait for a server that has room for it to be neither a
// moment nor nothing.
const longWaiting = time.Second

// unreadLong: a request has been there for that long of which nobody has read a byte.
func unreadLong(l *model.Listener) bool {
	return l != nil && l.Connections != nil && l.Connections.Unread >= longWaiting
}

// givenUp are the requests that wait and whose clients have closed, where that is most of
// them: the queue is then longer than the clients' patience, and room for more is room for more
// of these.
func givenUp(l *model.Listener) int {
	if l == nil || l.Connections == nil {
		return 0
	}
	n := l.Connections.Abandoned
	if n < givenUpLeast || 2*n < waitingRequests(l) {
		return 0
	}
	return n
}

// givenUpLeast is of how many of them that is said.
const givenUpLeast = 5

// ofTheGone are the slots of clients that have closed and for which no thread can be at work:
// more than the pool has threads. Their requests were read, so that they are asynchronous ones
// that nobody completes.
func ofTheGone(l *model.Listener) int {
	if l == nil || l.Connections == nil || l.Connector == nil || l.Connector.PoolThreads == nil || virtualThreads(l) {
		return 0
	}
	c := l.Connections
	read := c.Phases[model.ClientClosed] - c.Abandoned - c.ClosedIdle
	if 2*read <= c.Held() || read <= *l.Connector.PoolThreads {
		return 0
	}
	return read
}

// speaksHTTP: the rules of requests and answers hold on its connections. AJP's ends ping one
// another, and of other protocols the server speaks first.
func speaksHTTP(l *model.Listener) bool {
	return l != nil && l.Connector != nil && !strings.HasPrefix(l.Connector.Protocol, "ajp")
}

// acceptsWithWorkers: NIO2 has no acceptor thread, a worker takes the next connection
// (Nio2Endpoint.Nio2Acceptor): while all of them serve requests nobody accepts.
func acceptsWithWorkers(l *model.Listener) bool {
	return l != nil && l.Connector != nil && strings.HasSuffix(l.Connector.Protocol, "-nio2")
}

// waitingForThread are the requests that no thread has begun to read, and the
// connections that no thread has accepted where that takes one of the same.
func waitingForThread(l *model.Listener) int {
	n := waitingRequests(l)
	if acceptsWithWorkers(l) {
		n += queued(l)
	}
	return n
}

// boundedQueue is the configured length of the executor's queue. Tomcat's own
// default has no bound.
func boundedQueue(l *model.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.MaxQueue == nil {
		return 0, false
	}
	q := l.Connector.MaxQueue
	const unbounded = 1<<31 - 1 // Integer.MAX_VALUE
	return q.Value, q.Value >= 0 && q.Value < unbounded
}

// executorWaiting are the requests in the executor's queue, those of all
// connectors that share it.
func executorWaiting(l *model.Listener) int {
	if l != nil && l.Connector != nil && l.Connector.Shared != nil {
		return l.Connector.Shared.Waiting
	}
	return waitingRequests(l)
}

// executorAtLimit: the executor's bounded queue has no place left.
func executorAtLimit(l *model.Listener) bool {
	n, ok := boundedQueue(l)
	return ok && executorWaiting(l) >= n
}

// executorNearLimit reports whether the executor's bounded queue is full or nearly
// so: a request that is answered leaves a place for a moment.
func (p pair) executorNearLimit(l *model.Listener) bool {
	n, ok := boundedQueue(l)
	if !ok {
		return false
	}
	most, _ := maxThreads(l)
	busy, seen := busyThreads(l)
	if !p.threadsExhausted(l) && (!seen || most == 0 || busy < most) {
		return false
	}
	return float64(executorWaiting(l)) >= p.t.High*float64(n)
}

// filesFull reports whether the process has no descriptor left for accept().
func (p pair) filesFull(l *model.Listener) bool {
	used, most, ok := openFiles(l)
	return ok && model.FilesReached(used, most)
}

func openFiles(l *model.Listener) (used, most int, ok bool) {
	if l == nil || l.Process == nil || l.Process.OpenFiles == nil || l.Process.OpenFilesLimit == nil {
		return 0, 0, false
	}
	return *l.Process.OpenFiles, *l.Process.OpenFilesLimit, *l.Process.OpenFilesLimit > 0
}
