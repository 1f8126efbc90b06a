package cli

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/agent"
	"github.com/tcpdiag/tcpdiag/internal/sampler"
)

// agentOptions are the flags of agent.
type agentOptions struct {
	targets
	web            agent.Options
	sampleInterval time.Duration
	scanInterval   time.Duration
	maxListeners   int
	logLevel       string
	logFormat      string
}

func newAgentCommand() *cobra.Command {
	var o agentOptions
	def := sampler.Defaults()
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Watch, and export Prometheus metrics",
		Long: `agent watches the accept queues a hundred times a second and everything else
once a second, and serves /metrics, /api/v1/snapshot, / (a page for people),
/-/healthy and /-/ready. Scrapes are answered from memory.`,
		Example: `  tcpdiag agent
  tcpdiag agent --port 8080 --port 8443
  tcpdiag agent --web.listen-address 127.0.0.1:10889 --sample-interval 1ms
  tcpdiag agent --web.config.file web.yml         # TLS and basic auth`,
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.ErrOrStderr())
		}),
	}
	flags := cmd.Flags()
	o.register(flags)
	flags.StringArrayVar(&o.web.Listen, "web.listen-address", []string{":10889"}, "address to serve on (repeatable)")
	flags.BoolVar(&o.web.SystemdSocket, "web.systemd-socket", false, "serve on the sockets that systemd passed instead")
	flags.StringVar(&o.web.ConfigFile, "web.config.file", "", "exporter-toolkit web configuration: TLS, basic auth")
	flags.BoolVar(&o.web.Profile, "web.enable-pprof", false, "serve /debug/pprof")
	flags.DurationVar(&o.sampleInterval, "sample-interval", def.SampleInterval, "time between two looks at the accept queues")
	flags.DurationVar(&o.scanInterval, "scan-interval", def.ScanInterval, "time between two looks at everything; longer by itself when a look is dear")
	flags.IntVar(&o.maxListeners, "max-listeners", def.MaxListeners, "watch and export at most so many listeners, count the rest")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	return cmd
}

func (o *agentOptions) validate() error {
	switch {
	case o.sampleInterval < time.Millisecond || o.sampleInterval > 10*time.Second:
		return usagef("--sample-interval %v: give a time from 1ms to 10s", o.sampleInterval)
	case o.scanInterval < 100*time.Millisecond || o.scanInterval > time.Minute:
		return usagef("--scan-interval %v: give a time from 100ms to 1m", o.scanInterval)
	case o.maxListeners < 1:
		return usagef("--max-listeners %d: give a number from 1", o.maxListeners)
	case o.logFormat != "text" && o.logFormat != "json":
		return usagef("--log-format %q: give text or json", o.logFormat)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return usagef("--log-level %q: give debug, info, warn or error", o.logLevel)
	}
	return nil
}

func (o *agentOptions) run(ctx context.Context, stderr io.Writer) error {
	log := o.logger(stderr)
	opt := sampler.Defaults()
	o.options(&opt)
	opt.SampleInterval, opt.ScanInterval, opt.MaxListeners, opt.Log = o.sampleInterval, o.scanInterval, o.maxListeners, log
	opt.Scanned = agent.Processors()
	s, err := newSampler(opt)
	if err != nil {
		return err
	}
	defer s.Close()
	web := o.web
	web.Log, web.Now = log, time.Now
	return agent.Run(ctx, s, web)
}

func (o *agentOptions) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.logLevel)) // validated
	opt := &slog.HandlerOptions{Level: level}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}
