package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// watch is an agent at work and what it said, several times a second.
type watch struct {
	b      *scene
	agent  *rig.Agent
	before map[string]int // the kernel's counters when it started

	once  sync.Once // of its end
	mu    sync.Mutex
	looks []look
	stop  chan struct{}
	done  chan struct{}
}

// look is one answer of the agent.
type look struct {
	scanAge   float64 // seconds; the agent stretches the interval where scans are expensive
	listeners []rig.Listener
}

const lookEvery = 250 * time.Millisecond

// agent starts `tcpdiag agent`, given no more than the ports, and waits until it follows the handshakes of those on which something
// listens: it is ready before, and who comes until then is not counted.
func (b *scene) agent(ports ...int) *watch {
	var args []string
	for _, p := range ports {
		args = append(args, "--port", strconv.Itoa(p))
	}
	before, err := rig.Counters()
	b.Must(err)
	agent, err := b.StartAgent(b.Ctx, agentPort, args...)
	b.Must(err)
	w := &watch{b: b, agent: agent, before: before, stop: make(chan struct{}), done: make(chan struct{})}
	b.AtEnd(w.end)
	go w.run()
	b.Within(time.Minute, "handshakes are followed", func() bool {
		d, err := agent.Snapshot(b.Ctx)
		return err == nil && !slices.ContainsFunc(d.Listeners, func(l rig.Listener) bool {
			return l.AcceptQueue != nil && (l.Clients == nil || l.Clients.ObservedSeconds == 0)
		})
	})
	return w
}

// end stops the agent, once.
func (w *watch) end() {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		_, _ = w.agent.Stop()
	})
}

func (w *watch) run() {
	defer close(w.done)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		if d, err := w.agent.Snapshot(w.b.Ctx); err == nil {
			w.mu.Lock()
			w.looks = append(w.looks, look{age(d), d.Listeners})
			w.mu.Unlock()
		}
	}
}

func age(d *rig.Document) float64 {
	if d.ScanAgeSeconds == nil {
		return 0
	}
	return *d.ScanAgeSeconds
}

// oldest is the age that a scan reached before the next one.
func (w *watch) oldest() (seconds float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.looks {
		seconds = max(seconds, one.scanAge)
	}
	return seconds
}

// on are the snapshots of a port, in order.
func (w *watch) on(port int) []rig.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []rig.Listener
	for _, one := range w.looks {
		for _, l := range one.listeners {
			if l.Port == port {
				out = append(out, l)
			}
		}
	}
	return out
}

// height is how bad a snapshot is: its status, then how many clients are inside,
// then the packets lost.
func height(l rig.Listener) [4]int {
	h := [4]int{slices.Index([]string{"ok", "warning", "saturated", "losing", "down"}, l.Verdict.Status)}
	if l.Connections != nil {
		h[1] += l.Connections.Accepted
		h[3] = l.Connections.InService
	}
	if l.AcceptQueue != nil {
		h[1] += l.AcceptQueue.Length
	}
	if l.Losses != nil {
		h[2] = l.Losses.DroppedPackets
	}
	return h
}

// worst is the snapshot of a port that says most: the worst status, and of those
// the latest of those with most clients inside.
func (w *watch) worst(port int) *rig.Listener {
	worst := worstOf(w.on(port))
	if worst == nil {
		w.b.Must(fmt.Errorf("the agent has said nothing about port %d", port))
	}
	return worst
}

func worstOf(looks []rig.Listener) (worst *rig.Listener) {
	for _, l := range looks {
		if worst == nil || !above(height(*worst), height(l)) {
			worst = &l
		}
	}
	return worst
}

// settled is the worst look, or one so much later that another cause has
// settled: the agent damps changes of it for 3 s.
func (w *watch) settled(port int) *rig.Listener {
	const damped = 4 * time.Second
	worst := w.worst(port)
	w.b.said("at its fullest: %s", words(worst))
	looks := w.on(port)
	from := slices.IndexFunc(looks, func(l rig.Listener) bool { return height(l) == height(*worst) })
	for i := from + int(damped/lookEvery); i < len(looks); i++ {
		l := looks[i]
		if l.Verdict.Status == worst.Verdict.Status && l.Verdict.Cause != worst.Verdict.Cause && l.Connections != nil && l.Connections.Accepted > 0 {
			w.b.said("settled: %s", words(&l))
			return &l
		}
	}
	return worst
}

func above(a, b [4]int) bool { return slices.Compare(a[:], b[:]) > 0 }

// until waits for a snapshot of the first port that is as wanted and returns it.
func (w *watch) until(limit time.Duration, what string, condition func(rig.Listener) bool) *rig.Listener {
	var found *rig.Listener
	w.b.Within(limit, what, func() bool {
		for _, l := range w.on(port) {
			if condition(l) {
				found = &l
				return true
			}
		}
		return false
	})
	return found
}

// midway takes a snapshot this long after the load has come; it is answered when
// asked. An agent remembers the losses of a minute, a snapshot shows the present.
func (w *watch) midway(after time.Duration, port int) func() *rig.Listener {
	type result struct {
		d   *rig.Document
		err error
	}
	done := make(chan result, 1)
	seen := len(w.on(port))
	go func() {
		come := func(l rig.Listener) bool { return l.Connections != nil && l.Connections.Accepted > 0 }
		for deadline := time.Now().Add(30 * time.Second); !slices.ContainsFunc(w.on(port)[seen:], come); w.b.Wait(lookEvery) {
			if time.Now().After(deadline) || w.b.Ctx.Err() != nil {
				done <- result{err: errors.New("not within 30 s: the load comes")}
				return
			}
		}
		w.b.Wait(after)
		d, err := w.b.snapshotOr()
		done <- result{d, err}
	}()
	return func() *rig.Listener {
		r := <-done
		w.b.Must(r.err)
		return w.b.on(r.d, port)
	}
}

// onlyHurried checks that packets dropped under a load that fits were dropped
// because it came faster than accept() was called, or, if that is not known, because the queue was full.
func (w *watch) onlyHurried(l *rig.Listener) {
	if l.Losses == nil {
		return
	}
	for _, by := range l.Losses.By {
		if by.Packets > 0 && !slices.Contains([]string{"slow_accept", "cpu_saturated", "cpu_throttled", "jvm_pause", "accept_queue"}, by.Cause) {
			w.b.Holds(false, "%d packets dropped by %s, though all fit", by.Packets, by.Cause)
		}
	}
}

// conserved holds the agent's totals against the kernel's counter: every
// dropped packet is attributed or said to be unattributed, none twice.
func (w *watch) conserved() {
	const usual = 3 // seconds
	if apart := w.oldest(); apart > usual {
		w.b.said("scans up to %.0f s apart", apart)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		after, err := rig.Counters()
		w.b.Must(err)
		series, err := w.agent.Metrics(w.b.Ctx)
		w.b.Must(err)
		attributed := int(series.Sum("tcpdiag_listener_dropped_packets_total"))
		stray := int(series.Sum("tcpdiag_netns_unattributed_dropped_packets_total"))
		kernel := after["ListenDrops"] - w.before["ListenDrops"]
		if attributed+stray != kernel && time.Now().Before(deadline) {
			w.b.Wait(200 * time.Millisecond) // not scanned yet
			continue
		}
		w.b.Holds(attributed+stray == kernel, "%d attributed and %d unattributed packets, the kernel dropped %d", attributed, stray, kernel)
		if kernel > 0 {
			w.b.said("%s", fmt.Sprintf("ListenDrops %d = %d attributed + %d not", kernel, attributed, stray))
		}
		return
	}
}
