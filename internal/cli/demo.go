package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/agent"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
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
		Short: "Overload an embedded server with Tomcat's limits and report on it",
		Long: `demo starts an HTTP server with Tomcat's limits (a latch before accept, listen
with a backlog, a pool of workers), sends it more clients than it has room for,
and shows what tcpdiag reports. The queues are the kernel's own, on loopback.
It ends by itself, or on Ctrl-C.`,
		Example: `  tcpdiag demo
  tcpdiag demo --clients 26                       # exactly as many as there is room for
  tcpdiag demo --max-threads 1 --max-connections 1 --accept-count 1 --clients 10
  tcpdiag demo --service-time 500ms --for 10s`,
		Args: cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.server.MaxConnections, "max-connections", 20, "connections that the server accepts at once")
	flags.IntVar(&o.server.AcceptCount, "accept-count", 5, "backlog given to listen(2)")
	flags.IntVar(&o.server.MaxThreads, "max-threads", 4, "requests that it works on at once")
	flags.IntVar(&o.clients, "clients", 40, "clients that connect at the same moment, each with one request")
	command.TimeVar(flags, &o.server.ServiceTime, "service-time", 2*time.Second, "how long a request takes")
	command.TimeVar(flags, &o.lasts, "for", 20*time.Second, "maximum duration")
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
			return command.Usagef("--%s %d: give a number from 1 to %d", f.name, f.value, f.most)
		}
	}
	if o.server.ServiceTime < time.Millisecond || o.server.ServiceTime > time.Minute {
		return command.Usagef("--service-time %v: give a time from 1ms to 1m", o.server.ServiceTime)
	}
	if o.lasts < time.Second || o.lasts > time.Hour {
		return command.Usagef("--for %v: give a time from 1s to 1h", o.lasts)
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
	demoArrival        = 250 * time.Millisecond
	demoRequestTimeout = 30 * time.Second
)

// demoStage is the agent that starts next to the server once its port is known.
type demoStage struct {
	*demoOptions
	w       io.Writer
	tasks   *errgroup.Group
	running atomic.Pointer[command.Followed]
	demo.Commentary
}

func (o *demoOptions) run(ctx context.Context, w io.Writer) error {
	tasks, stop := context.WithTimeout(ctx, o.lasts)
	defer stop()
	g, tasks := errgroup.WithContext(tasks)
	stage := &demoStage{demoOptions: o, w: w, tasks: g}
	stage.Commentary = demo.Commentary{Limits: o.server, Snapshot: stage.snapshot, Out: w, Color: command.TextOptionsOf(w).Color}
	nameProcess("demo-server")
	g.Go(func() error {
		defer stop()
		outcomes, err := demo.Run(tasks, o.script(), func(e demo.Event) {
			if e.Kind == demo.Listening {
				stage.open(tasks, e.Address)
			}
			stage.Handle(e)
		})
		if err != nil {
			return err
		}
		return stage.conclude(outcomes)
	})
	return g.Wait()
}

// nameProcess is what the others see of this process in place of the program's name
// (/proc/PID/comm, at most 15 letters): the server that is reported on is no tcpdiag.
func nameProcess(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0o600) // where it cannot be, it keeps its own
}

// script is the play: a second of quiet, the burst, and an end when the time
// is up or, earlier, when every client has its outcome.
func (o *demoOptions) script() demo.Options {
	return demo.Options{
		Server: o.server,
		Delay:  time.Second,
		Burst: demo.BurstOptions{
			Clients: o.clients, Rate: float64(o.clients) / demoArrival.Seconds(),
			ConnectTimeout: demoConnectTimeout, RequestTimeout: demoRequestTimeout,
		},
	}
}

// open starts the agent next to the server.
func (d *demoStage) open(ctx context.Context, server netip.AddrPort) {
	address := freeAddress(ctx, d.listen)
	d.introduce(d.w, server, address)
	d.tasks.Go(func() error {
		s, err := d.watch(server.Port())
		if err != nil {
			return err
		}
		f, err := (&command.Targets{Handshakes: clients.Auto}).Follower(s)
		if err != nil {
			s.Close()
			return err
		}
		both := &command.Followed{Scheduler: s, Follower: f}
		defer both.Close()
		d.running.Store(both)
		return agent.Run(ctx, both, agent.Options{Listen: []string{address}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	})
}

// snapshot is nil until the agent's first scan.
func (d *demoStage) snapshot() *model.Snapshot {
	if s := d.running.Load(); s != nil {
		return s.Snapshot()
	}
	return nil
}

func (o *demoOptions) watch(port uint16) (*schedule.Scheduler, error) {
	opt := schedule.Defaults()
	opt.Ports = []uint16{port}
	opt.ScanInterval = 500 * time.Millisecond
	opt.Limits = watchlist.Overrides{
		MaxConnections: watchlist.ByHand(&o.server.MaxConnections, "flag --max-connections"),
		AcceptCount:    watchlist.ByHand(&o.server.AcceptCount, "flag --accept-count"),
		MaxThreads:     watchlist.ByHand(&o.server.MaxThreads, "flag --max-threads"),
	}
	return command.NewScheduler(opt)
}

// freeAddress is the wanted address, or any free port of its host when it is
// taken, or 0: the demo should not fail because an agent runs already, and says where its own is.
func freeAddress(ctx context.Context, wanted string) string {
	var lc net.ListenConfig
	host, port, err := net.SplitHostPort(wanted)
	if err != nil {
		return wanted
	}
	if l, err := lc.Listen(ctx, "tcp", wanted); err == nil {
		_ = l.Close()
		if port != "0" {
			return wanted
		}
	}
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return wanted
	}
	defer l.Close()
	return l.Addr().String()
}

func (o *demoOptions) introduce(w io.Writer, server netip.AddrPort, address string) {
	room := o.server.MaxConnections + o.server.AcceptCount + 1
	fmt.Fprintf(w, `An HTTP server that admits like Tomcat listens on %s:
  maxThreads %d, maxConnections %d, acceptCount %d; a request takes %s.
There is room for %d + %d + 1 = %d clients (the "one" is the kernel's).
%d come within %s s, and give up when they are not connected after %s.

While it runs, in another terminal:
  tcpdiag snapshot --port %d --max-connections %d --max-threads %d
  curl http://%s/metrics        (its page: http://%s/)

`, server, o.server.MaxThreads, o.server.MaxConnections, o.server.AcceptCount, phrase.Seconds(o.server.ServiceTime),
		o.server.MaxConnections, o.server.AcceptCount, room, o.clients, phrase.Fraction(demoArrival.Seconds()), phrase.Seconds(demoConnectTimeout),
		server.Port(), o.server.MaxConnections, o.server.MaxThreads, address, address)
}

// conclude compares what the clients counted with what the kernel counted.
func (d *demoStage) conclude(outcomes demo.Outcomes) error {
	said := []string{fmt.Sprintf("What the clients say: %s.", outcomes)}
	if counted := clientsAndPackets(d.snapshot()); counted != "" {
		said = append(said, "What their handshakes and the kernel's counters say: "+counted+".")
	}
	fmt.Fprintln(d.w)
	if err := render.Sentences(d.w, said, command.TextOptionsOf(d.w)); err != nil || d.Worst() == nil {
		return err
	}
	fmt.Fprintf(d.w, "\nWhat tcpdiag says of the worst moment:\n\n")
	return render.Text(d.w, d.Worst(), command.TextOptionsOf(d.w))
}

// clientsAndPackets shows the clients next to the packets that were dropped of
// them; empty where handshakes are not followed.
func clientsAndPackets(s *model.Snapshot) string {
	if s == nil || len(s.Listeners) == 0 || s.Listeners[0].Totals.Clients == nil || s.Listeners[0].Losses == nil {
		return ""
	}
	l := &s.Listeners[0]
	var said []string
	for o, n := range l.Totals.Clients.Outcomes {
		if n > 0 {
			said = append(said, phrase.Number(n)+" "+strings.ReplaceAll(model.ClientOutcome(o).String(), "_", " "))
		}
	}
	if c := l.Losses.Clients; c != nil && c.Trying() > 0 {
		said = append(said, phrase.Number(c.Trying())+" not decided yet")
	}
	return strings.Join(said, ", ") + "; " + phrase.Count(l.Losses.DroppedPackets, "packet") + " dropped"
}
