package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/agent"
	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/sampler"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	server  demo.ServerOptions
	clients int
	lasts   time.Duration
	listen  string
}

func newDemoCommand() *cobra.Command {
	o := demoOptions{server: demo.ServerOptions{Address: "127.0.0.1:0"}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a server with Tomcat's limits, a burst, and the verdict",
		Long: `demo starts an HTTP server that admits like Tomcat (a latch before accept, listen
with the backlog, a pool of workers), sends more clients than it has room for,
and lets the agent say what happens. The queues are the kernel's own, on
loopback. It ends by itself, or on Ctrl-C.`,
		Example: `  tcpdiag demo
  tcpdiag demo --clients 26                       # exactly as many as there is room for
  tcpdiag demo --max-threads 1 --max-connections 1 --accept-count 1 --clients 10
  tcpdiag demo --service-time 500ms --for 10s`,
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.server.MaxConnections, "max-connections", 20, "connections accepted at once")
	flags.IntVar(&o.server.AcceptCount, "accept-count", 5, "backlog given to listen(2)")
	flags.IntVar(&o.server.MaxThreads, "max-threads", 4, "requests worked on at once")
	flags.IntVar(&o.clients, "clients", 40, "clients that connect at the same moment, each with one request")
	flags.DurationVar(&o.server.ServiceTime, "service-time", 2*time.Second, "how long a request takes")
	flags.DurationVar(&o.lasts, "for", 20*time.Second, "the longest it may last")
	flags.StringVar(&o.listen, "web.listen-address", "127.0.0.1:10889", "address of /metrics; any free port when it is taken")
	return cmd
}

// mostClients is what one process may hold open, both ends of each connection
// included, under the usual limit of 20,000 files or more.
const mostClients = 8000

func (o *demoOptions) validate() error {
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"max-connections", o.server.MaxConnections, mostClients},
		{"accept-count", o.server.AcceptCount, 65535},
		{"max-threads", o.server.MaxThreads, mostClients},
		{"clients", o.clients, mostClients},
	} {
		if f.value < 1 || f.value > f.most {
			return usagef("--%s %d: give a number from 1 to %d", f.name, f.value, f.most)
		}
	}
	if o.server.ServiceTime < time.Millisecond || o.server.ServiceTime > time.Minute {
		return usagef("--service-time %v: give a time from 1ms to 1m", o.server.ServiceTime)
	}
	if o.lasts < time.Second || o.lasts > time.Hour {
		return usagef("--for %v: give a time from 1s to 1h", o.lasts)
	}
	return nil
}

// patience of the demo's clients: long enough to see Linux repeat a dropped
// SYN a few times, short enough to see some give up.
const (
	demoConnectTimeout = 4 * time.Second
	// demoArrival spreads the clients a little: hundreds of SYNs in the same
	// millisecond overflow any small queue before the server is even scheduled,
	// which is true but not what the demo is about.
	demoArrival = 250 * time.Millisecond
	demoRequestTimeout = 30 * time.Second
)

func (o *demoOptions) run(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.lasts)
	defer cancel()
	server, err := demo.Listen(ctx, o.server)
	if err != nil {
		return err
	}
	load, err := demo.NewLoad(demo.BurstOptions{
		Address: server.Address().String(), Clients: o.clients,
		Rate: float64(o.clients) / demoArrival.Seconds(),
		ConnectTimeout: demoConnectTimeout, RequestTimeout: demoRequestTimeout,
	})
	if err != nil {
		return err
	}
	s, err := o.sampler(server.Address().Port())
	if err != nil {
		return err
	}
	defer s.Close()
	address := freeAddress(ctx, o.listen)
	o.introduce(w, server, address)

	tasks, cancelTasks := context.WithCancel(ctx)
	g, tasks := errgroup.WithContext(tasks)
	g.Go(func() error { return server.Serve(tasks) })
	g.Go(func() error {
		return agent.Run(tasks, s, agent.Options{Listen: []string{address}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	})
	g.Go(func() error {
		defer cancelTasks()
		return o.show(tasks, w, server, load, s)
	})
	return g.Wait()
}

func (o *demoOptions) sampler(port uint16) (*sampler.Sampler, error) {
	opt := sampler.Defaults()
	opt.Ports = []uint16{port}
	opt.ScanInterval = 500 * time.Millisecond
	opt.Limits = sampler.Overrides{
		MaxConnections: &o.server.MaxConnections, AcceptCount: &o.server.AcceptCount, MaxThreads: &o.server.MaxThreads,
	}
	return newSampler(opt)
}

// freeAddress is the wanted address, or any free port of its host when it is
// taken: the demo should not fail because an agent runs already.
func freeAddress(ctx context.Context, wanted string) string {
	var lc net.ListenConfig
	if l, err := lc.Listen(ctx, "tcp", wanted); err == nil {
		_ = l.Close()
		return wanted
	}
	host, _, err := net.SplitHostPort(wanted)
	if err != nil {
		return wanted
	}
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return wanted
	}
	defer l.Close()
	return l.Addr().String()
}

func (o *demoOptions) introduce(w io.Writer, server *demo.Server, address string) {
	room := o.server.MaxConnections + o.server.AcceptCount + 1
	fmt.Fprintf(w, `An HTTP server that admits like Tomcat listens on %s:
  maxThreads %d, maxConnections %d, acceptCount %d; a request takes %v.
There is room for %d + %d + 1 = %d clients (the "one" is the kernel's). %d come within %v.
They give up when they are not connected after %v.

While it runs:   curl http://%s/metrics
                 tcpdiag snapshot --port %d --max-connections %d --max-threads %d

`, server.Address(), o.server.MaxThreads, o.server.MaxConnections, o.server.AcceptCount, o.server.ServiceTime,
		o.server.MaxConnections, o.server.AcceptCount, room, o.clients, demoArrival, demoConnectTimeout,
		address, server.Address().Port(), o.server.MaxConnections, o.server.MaxThreads)
}

// show waits for the first scan, then runs the burst and tells how it ended.
func (o *demoOptions) show(ctx context.Context, w io.Writer, server *demo.Server, load *demo.Load, s *sampler.Sampler) error {
	for s.Snapshot() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
	show := demo.Show{
		Server: server, Load: load, Limits: o.server, Clients: o.clients,
		Snapshot: s.Snapshot, Out: w, Now: time.Now,
	}
	fmt.Fprintln(w, show.Heading())
	verdict, outcomes := show.Run(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		fmt.Fprintln(w, "\nStopped.")
	}
	return o.conclude(w, verdict, outcomes)
}

func (o *demoOptions) conclude(w io.Writer, verdict *backlog.Snapshot, outcomes demo.Outcomes) error {
	if verdict == nil {
		return nil
	}
	fmt.Fprintf(w, "\nWhat the clients say: %s.\n\nWhat tcpdiag says of the worst moment:\n\n", outcomes)
	return render.Text(w, verdict, textOptions(w))
}
