// Package agentcmd is tcpdiag agent: its flags and its configuration file become the tasks that
// package agent runs until a signal ends them.
package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/agent"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/config"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
)

// agentOptions are the flags of agent.
type agentOptions struct {
	command.Targets
	web            agent.Options
	config         string
	checkConfig    bool
	sampleInterval time.Duration
	scanInterval   time.Duration
	maxListeners   int
	shutdownDelay  time.Duration
	lifetime       time.Duration
	incidents      incidentOptions
	threadDump     bool
	logLevel       string
	logFormat      string
}

// New is the command.
func New() *cobra.Command {
	var o agentOptions
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Sample permanently and export Prometheus metrics",
		Long: `agent samples the accept queues 100 times per second, reads everything else when
it is needed, and serves /metrics, /api/v1/snapshot, / (a page for people),
/-/healthy and /-/ready. Requests are answered from memory.

Targets, their limits and labels, and intervals can be configured in a file
(--config; deploy/config/tcpdiag.yml is an example with every key). A flag
overrides the file's key of the same name; --port keeps only the file's settings
of those ports, --pid none of them. SIGHUP reloads the file, and so does POST
/-/reload with --web.enable-lifecycle. An invalid file changes nothing, and
tcpdiag_config_last_reload_successful is then 0.

When a listener becomes saturated, losing or down the agent records an incident:
the minute before, what is seen while it lasts with its evidence, and the minute
after. The page lists them, /api/v1/incidents and tcpdiag report show what
happened. With --incident-dir each is a file, written as it happens; otherwise the
latest are kept in memory.`,
		Example: `  tcpdiag agent
  tcpdiag agent --port 8080 --port 8443
  tcpdiag agent --all-namespaces                  # one for all containers of a machine, as root
  tcpdiag agent --web.listen-address 127.0.0.1:10889 --sample-interval 1ms
  tcpdiag agent --web.config.file web.yml         # TLS and basic auth
  tcpdiag agent --config tcpdiag.yml              # what to watch, read again on SIGHUP
  tcpdiag agent --config tcpdiag.yml --check-config
  tcpdiag agent --incident-dir /var/lib/tcpdiag   # incidents outlive the agent
  tcpdiag agent --port 8080 --thread-dump         # as the server's user: where its threads were`,
		Args: cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			given := cmd.Flags().Changed
			if err := o.validate(given); err != nil {
				return err
			}
			if o.checkConfig {
				return o.check(cmd.OutOrStdout(), given)
			}
			return o.run(cmd.Context(), cmd.ErrOrStderr(), given)
		}),
	}
	o.flags(cmd.Flags())
	command.CompleteFlags(cmd)
	return cmd
}

func (o *agentOptions) flags(flags *pflag.FlagSet) {
	def := schedule.Defaults()
	o.Register(flags)
	flags.StringArrayVar(&o.web.Listen, "web.listen-address", []string{":10889"}, "address to serve on (repeatable)")
	flags.BoolVar(&o.web.SystemdSocket, "web.systemd-socket", false, "serve on the sockets that systemd passes, instead of --web.listen-address")
	flags.StringVar(&o.web.ConfigFile, "web.config.file", "", "exporter-toolkit web configuration: TLS, basic auth")
	flags.StringVar(&o.config, "config", "", "configuration file of targets (YAML); flags override it")
	flags.BoolVar(&o.checkConfig, "check-config", false, "check the file of --config and exit: 0 valid, 1 not")
	flags.BoolVar(&o.web.Lifecycle, "web.enable-lifecycle", false, "allow POST /-/reload to reload the file of --config")
	flags.StringArrayVar(&o.web.AllowedHosts, "web.allowed-host", nil, "further host name under which browsers are served (repeatable); addresses, the machine's name and names without a dot always are")
	flags.BoolVar(&o.web.Profile, "web.enable-pprof", false, "serve /debug/pprof")
	command.TimeVar(flags, &o.sampleInterval, "sample-interval", def.SampleInterval, "time between two samples of the accept queues")
	command.TimeVar(flags, &o.scanInterval, "scan-interval", def.ScanInterval, "time between two published snapshots")
	flags.IntVar(&o.maxListeners, "max-listeners", def.MaxListeners, "maximum number of listeners to export; the rest is only counted")
	command.TimeVar(flags, &o.shutdownDelay, "shutdown-delay", 0, "keep serving this long after SIGTERM so that a final scrape succeeds; a second signal ends it at once")
	command.TimeVar(flags, &o.lifetime, "lifetime", 0, "end by itself after this time; 0: run until a signal")
	o.incidents.register(flags)
	command.RegisterThreadDump(flags, &o.threadDump, "once in each incident")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
}

func (o *agentOptions) validate(given func(flag string) bool) error {
	if err := o.Validate(); err != nil {
		return err
	}
	switch {
	case given("config") && o.config == "":
		return command.Usagef(`--config "": give a file`)
	case o.checkConfig && o.config == "":
		return command.Usagef("--check-config needs --config")
	case o.sampleInterval < config.MinSampleInterval || o.sampleInterval > config.MaxSampleInterval:
		return command.Usagef("--sample-interval %v: give a time from 1ms to 10s", o.sampleInterval)
	case o.scanInterval < config.MinScanInterval || o.scanInterval > config.MaxScanInterval:
		return command.Usagef("--scan-interval %v: give a time from 100ms to 1m", o.scanInterval)
	case o.maxListeners < 1:
		return command.Usagef("--max-listeners %d: give a number from 1", o.maxListeners)
	case o.shutdownDelay < 0:
		return command.Usagef("--shutdown-delay %v: give a time from 0", o.shutdownDelay)
	case o.lifetime < 0:
		return command.Usagef("--lifetime %v: give a time from 0", o.lifetime)
	case o.badAddress() != "":
		return command.Usagef("--web.listen-address %q: give HOST:PORT or :PORT, such as :10889", o.badAddress())
	case o.incidents.validate() != nil:
		return o.incidents.validate()
	case o.logFormat != "text" && o.logFormat != "json":
		return command.Usagef("--log-format %q: give text or json", o.logFormat)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return command.Usagef("--log-level %q: give debug, info, warn or error", o.logLevel)
	}
	return nil
}

// badAddress is a --web.listen-address without a port; "" when there is none. What a host's
// name stands for is found out when it is listened on, and vsock:// is another kind.
func (o *agentOptions) badAddress() string {
	for _, address := range o.web.Listen {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = new(net.Resolver).LookupPort(context.Background(), "tcp", port)
		}
		if err != nil && !strings.HasPrefix(address, "vsock://") {
			return address
		}
	}
	return ""
}

func (o *agentOptions) run(ctx context.Context, stderr io.Writer, given func(flag string) bool) error {
	log := o.logger(stderr)
	if o.lifetime > 0 { // as a signal would end it
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		defer time.AfterFunc(o.lifetime, end).Stop()
	}
	stopping := ctx.Done()
	ctx, leave := agent.Linger(ctx, o.shutdownDelay, log)
	defer leave()
	ctx, hangups, end := watchHangups(ctx)
	defer end()
	opt, err := o.configured(given)
	if err != nil {
		return err
	}
	group, err := o.incidents.groupID()
	if err != nil {
		return err
	}
	opt.Log, opt.CPUTime = log, cputime.Process
	agent.LimitProcessors()
	agent.LimitHeap()
	s, err := command.NewScheduler(opt)
	if err != nil {
		return err
	}
	web := o.web
	web.Log, web.Now, web.Hangups, web.Stopping = log, time.Now, hangups, stopping
	web.Healthy = s.Healthy
	web.IncidentDir, web.IncidentGroup, web.IncidentLimits = o.incidents.dir, group, o.incidents.limits()
	if o.config != "" {
		web.Reload = func(ctx context.Context) error { return o.reload(ctx, s, given) }
	}
	f, err := o.Follower(s)
	if err != nil {
		s.Close()
		return err
	}
	both := &command.Followed{Scheduler: s, Follower: f}
	defer both.Close()
	if o.threadDump {
		if both.Dumps, err = command.FollowDumps(s, log); err != nil {
			return err
		}
	}
	err = agent.Run(ctx, both, web)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; give another one with --web.listen-address", err)
	}
	return err
}

func (o *agentOptions) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.logLevel)) // validated
	opt := &slog.HandlerOptions{Level: level, ReplaceAttr: printableAttr}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

// printableAttr keeps the control characters of others' names out of the log.
func printableAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(model.Printable(v))
	case error:
		a.Value = slog.StringValue(model.Printable(v.Error()))
	}
	return a
}

// watchHangups hands out the SIGHUPs from now on. Nobody dies of one: to a
// daemon it says that its configuration is to be read again. But a program that
// was started in a terminal ends with it, as others do, or the agent that
// somebody only tried out would hold its port for ever; nohup prevents that,
// as it does for others.
func watchHangups(ctx context.Context) (within context.Context, hangups <-chan os.Signal, end func()) {
	bound := !signal.Ignored(syscall.SIGHUP) && hasTerminal()
	ctx, end = context.WithCancel(ctx)
	in, out := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(in, syscall.SIGHUP)
	go func() {
		defer signal.Stop(in)
		defer end()
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-in:
				if bound && !hasTerminal() {
					return
				}
				select {
				case out <- s:
				default: // one is waiting already
				}
			}
		}
	}()
	return ctx, out, end
}

// hasTerminal reports whether there is a controlling terminal. Opening it fails
// with ENXIO when there is none, and once it has hung up.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	return tty.Close() == nil
}
