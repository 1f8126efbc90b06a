// Package demo holds a server that admits clients the way Tomcat does, and the
// clients to overload it (or a real Tomcat) with. The queues in front of the
// server are the real kernel's; only the limits behind them are imitated.
package demo

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options of a whole demonstration.
type Options struct {
	Server ServerOptions
	Burst  BurstOptions  // Address is the server's own
	Delay  time.Duration // quiet time before the burst
	For    time.Duration // the whole run; 0 ends it with the last client's outcome
	Every  time.Duration // between two snapshots; 0 is one second
}

// EventKind is what an Event reports.
type EventKind int

// The events of a run, in order; Present comes any number of times.
const (
	Listening EventKind = iota // clients may connect; nothing has happened yet
	BurstStarted
	Present    // the present state
	BurstEnded // every client has its outcome
	Ended      // the server is closed
)

// Event is one line for a running commentary.
type Event struct {
	Kind    EventKind
	Elapsed time.Duration // since Listening
	Address netip.AddrPort
	Server  ServerStats
	Clients Progress
}

// Run starts the server and the burst against it, and says what happens, one
// event at a time. It ends after o.For, with the last outcome when that is 0,
// or with ctx; none of these is an error. Clients without an outcome by then
// count as unfinished.
func Run(ctx context.Context, o Options, report func(Event)) (Outcomes, error) {
	if err := roomFor(o.Burst.Clients + o.Server.MaxConnections); err != nil {
		return Outcomes{}, err
	}
	server, err := Listen(ctx, o.Server)
	if err != nil {
		return Outcomes{}, err
	}
	o.Burst.Address = reachable(server.Address()).String()
	load, err := NewLoad(o.Burst)
	if err != nil {
		_ = server.listener.Close()
		return Outcomes{}, err
	}
	r := &run{o: o, server: server, load: load, report: report, start: time.Now()}
	return r.all(ctx)
}

// reachable is where clients on this machine find a listener of any address.
func reachable(a netip.AddrPort) netip.AddrPort {
	switch {
	case !a.Addr().IsUnspecified():
		return a
	case a.Addr().Is4():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	default:
		return netip.AddrPortFrom(netip.IPv6Loopback(), a.Port())
	}
}

type run struct {
	o      Options
	server *Server
	load   *Load
	report func(Event)
	start  time.Time
}

func (r *run) all(ctx context.Context) (Outcomes, error) {
	if r.o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.o.For)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.server.Serve(ctx) })
	g.Go(func() error { r.narrate(ctx, cancel); return nil })
	if err := g.Wait(); err != nil {
		return r.load.Now().Outcomes, err
	}
	r.say(Ended)
	return r.load.Now().Outcomes, nil
}

// narrate runs the burst and reports every event but the last from this one
// goroutine, so that the lines come in order.
func (r *run) narrate(ctx context.Context, end func()) {
	r.say(Listening)
	if !sleep(ctx, r.o.Delay) {
		return
	}
	r.say(BurstStarted)
	burst := make(chan struct{})
	go func() { r.load.Run(ctx); close(burst) }()
	defer func() { <-burst }()
	r.watch(ctx, burst)
	if ctx.Err() != nil {
		return
	}
	r.say(BurstEnded)
	if r.o.For == 0 {
		end()
		return
	}
	r.watch(ctx, nil)
}

// watch reports the Present at every tick until done or the run's end.
func (r *run) watch(ctx context.Context, done <-chan struct{}) {
	every := r.o.Every
	if every <= 0 {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.say(Present)
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *run) say(kind EventKind) {
	r.report(Event{
		Kind:    kind,
		Elapsed: time.Since(r.start),
		Address: r.server.Address(),
		Server:  r.server.Stats(),
		Clients: r.load.Now(),
	})
}
