package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
)

// defaultSpool is where the packages' unit and the chart have it.
const defaultSpool = "/var/lib/tcpdiag-archive"

// runOptions are the flags of run.
type runOptions struct {
	dir, bucket, otlp, cluster, spool, listen string
	spoolMiB                                  int
	interval, grace                           time.Duration
	logLevel, logFormat                       string
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Send incidents as they are recorded",
		Long: `run reads the folder in which an agent records incidents. It sends a log record by
OTLP when one begins, changes its cause and ends, with the answer in words, and
writes each recording to the bucket when it has ended. What cannot be sent waits
in the spool, which is bounded; what finds no room there is counted and logged.

It needs to read the folder (the agent's --incident-group) and nothing else. Of the
bucket it needs the right to write. Headers and certificates for the collector are
in the variables OTEL_EXPORTER_OTLP_HEADERS, …_CERTIFICATE, …_CLIENT_CERTIFICATE and
…_CLIENT_KEY; credentials for the bucket are where its own tools have them.`,
		Example: `  tcpdiag-archive run --incident-dir /var/lib/tcpdiag --otlp-endpoint http://127.0.0.1:4318
  tcpdiag-archive run --incident-dir /var/lib/tcpdiag --bucket gs://incidents --cluster shop-eu`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, cmd.ErrOrStderr()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "incident-dir", "/var/lib/tcpdiag", "folder in which an agent records incidents")
	f.StringVar(&o.bucket, "bucket", "", "URL of the object store for recordings: s3://, gs://, azblob:// or file://; none: recordings stay where they are")
	f.StringVar(&o.otlp, "otlp-endpoint", "", "URL of an OTLP receiver over HTTP for log records; none: none are sent")
	f.StringVar(&o.cluster, "cluster", "default", "name of the cluster or site, the first part of a recording's key")
	f.StringVar(&o.spool, "spool", defaultSpool, "folder for what waits to be sent, and for what was sent; made if need be")
	f.IntVar(&o.spoolMiB, "spool-max-mib", 256, "maximum size of what waits, in MiB; the oldest recordings of whom most waits are dropped")
	f.DurationVar(&o.interval, "interval", time.Second, "how often the folder is read")
	f.DurationVar(&o.grace, "shutdown-grace", 5*time.Second, "time after SIGTERM for the last records of an agent that is stopped at the same time")
	f.StringVar(&o.listen, "web.listen-address", "", "address for /metrics and /-/healthy, such as 127.0.0.1:10890; none: not served")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	return cmd
}

func (o *runOptions) validate() error {
	switch {
	case o.bucket == "" && o.otlp == "":
		return usagef("give --bucket, --otlp-endpoint or both")
	case o.spoolMiB < 32:
		return usagef("--spool-max-mib %d: give a number from 32, the room of two recordings", o.spoolMiB)
	case o.interval < 100*time.Millisecond || o.interval > time.Minute:
		return usagef("--interval %v: give a time from 100ms to 1m", o.interval)
	case o.grace < 0 || o.grace > 10*time.Minute:
		return usagef("--shutdown-grace %v: give a time to 10m", o.grace)
	case records.KeyPart(o.cluster) != o.cluster:
		return usagef("--cluster: give letters, digits, dots, dashes and underscores")
	}
	return nil
}

func (o *runOptions) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, usagef("--log-level: give debug, info, warn or error")
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, usagef("--log-format: give text or json")
}

func (o *runOptions) run(cmd *cobra.Command, stderr io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	a := &archiver{
		dir: o.dir, cluster: o.cluster, interval: o.interval, grace: o.grace, stale: recording.Silent, log: log, now: time.Now,
		following: make(map[string]*records.Recording), said: make(map[string]bool),
	}
	if err := a.ends(cmd, o); err != nil {
		return err
	}
	if a.spool, err = openSpool(o.spool, int64(o.spoolMiB)<<20, log); err != nil {
		return fmt.Errorf("--spool: %w", err)
	}
	defer a.spool.close()
	if a.store != nil {
		defer a.store.close()
	}
	if a.cursor, err = loadCursor(a.spool); err != nil {
		return fmt.Errorf("--spool: %w", err)
	}
	a.metrics = newMetrics(a.spool)
	a.spool.lost = func(kind string) {
		if kind == kindEvent {
			a.metrics.records.WithLabelValues(outcomeDropped).Inc()
		} else {
			a.metrics.recordings.WithLabelValues(outcomeDropped).Inc()
		}
	}
	heart := &heart{root: a.spool.root}
	a.beat = heart.beat
	stop, err := serve(cmd.Context(), o.listen, a.metrics, heart, log)
	if err != nil {
		return fmt.Errorf("--web.listen-address: %w", err)
	}
	defer stop()
	log.Info("tcpdiag-archive runs", "incident_dir", o.dir, "log_records", o.otlp != "", "recordings", o.bucket != "",
		"waiting_log_records", a.spool.waiting(kindEvent), "waiting_recordings", a.spool.waiting(kindRecording), "uid", os.Geteuid())
	return a.run(cmd.Context())
}

// ends are where things go.
func (a *archiver) ends(cmd *cobra.Command, o *runOptions) (err error) {
	if o.bucket != "" {
		if a.bucket, err = bucketURL(o.bucket); err != nil {
			return err
		}
		a.store = &store{url: a.bucket}
		if err := a.beginStore(cmd.Context()); err != nil {
			return err
		}
	}
	if o.otlp == "" {
		return nil
	}
	endpoint, err := collectorURL(o.otlp)
	if err != nil {
		return err
	}
	if a.collector, err = newCollector(cmd.Context(), endpoint); err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return nil
}

// beginStore opens the bucket, so that a mistake in its URL is known before the first incident. What may
// be there later, a folder or an identity, is waited for.
func (a *archiver) beginStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	b, err := a.store.open(ctx)
	waits := isMissing(err) || a.bucket.Scheme == "gs"
	if err == nil {
		waits, err = true, identified(ctx, b)
	}
	switch {
	case err == nil:
		return nil
	case waits:
		a.log.Warn("nothing can be written to the bucket yet; it is tried again for the first recording", "err", inWords(a.bucket, err))
		return nil
	}
	return usagef("--bucket: %s", oneLine(explained(err).Error()))
}
