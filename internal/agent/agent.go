// Package agent composes the long-running tasks: the sampler's loops and the
// HTTP server that answers from what they published.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// SIGTERM ends the agent within two seconds, whatever hangs.
const (
	// shutdownTimeout is how long running requests and a scan may take after the signal.
	shutdownTimeout = time.Second
	// requestTimeout is how long a connection may take to send its request then.
	requestTimeout = 250 * time.Millisecond
	// endTimeout is how long anything is waited for then.
	endTimeout = 1500 * time.Millisecond
)

// Observer is what the agent runs and serves.
type Observer interface {
	Run(ctx context.Context) error
	Snapshot() *model.Snapshot
	Next() <-chan struct{} // closed when there is another one
	// PutAgent takes what a task says of itself, for the snapshots.
	PutAgent(put func(*model.Agent))
}

// Options say where and how to serve.
type Options struct {
	Listen        []string // addresses, or one vsock/systemd socket
	SystemdSocket bool
	ConfigFile    string   // exporter-toolkit web config: TLS, basic auth
	Profile       bool     // serve /debug/pprof
	AllowedHosts  []string // further names under which a browser is served

	Lifecycle bool                        // let POST /-/reload do what SIGHUP does
	Reload    func(context.Context) error // reads the configuration file again; nil without one
	Hangups   <-chan os.Signal            // SIGHUPs, each of which reloads; may be nil
	Stopping  <-chan struct{}             // closed when the agent is asked to stop, see Linger; may be nil

	// Incidents are recorded to a directory, "" for the latest in memory.
	IncidentDir    string
	IncidentGroup  *int // that may read the directory
	IncidentLimits incident.Limits

	// Healthy says what of the agent itself has stopped; nil: nothing is asked.
	Healthy func() error

	Log *slog.Logger
	Now func() time.Time
}

// Run samples and serves until ctx is done, or one of the two fails.
func Run(ctx context.Context, s Observer, o Options) error {
	if o.ConfigFile != "" {
		if err := toolkit.Validate(o.ConfigFile); err != nil {
			return fmt.Errorf("agent: web config %q: %w", o.ConfigFile, err)
		}
	}
	o.Log.Info("tcpdiag agent starts", "version", version.Version, "revision", version.Revision, "listen", o.Listen)
	g, ctx := errgroup.WithContext(ctx)
	reloads := newReloader(s, o)
	modules := &moduleWait{log: o.Log}
	ledger := shares.NewLedger(o.Log, time.Now)
	recorder := newRecorder(s, ledger, o)
	page, err := newPage(s.Snapshot, recorder, o)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	server := newServer(ctx, handler(s.Snapshot, modules.reason, reloads, recorder, page, ledger, o))
	g.Go(func() error { return recorder.Run(ctx) })
	g.Go(func() error { return describe(ctx, s, recorder, ledger) })
	g.Go(func() error { return page.Run(ctx) })
	g.Go(func() error { return release(ctx, o.Log) })
	g.Go(func() error { return sample(ctx, modules, s) })
	g.Go(func() error { return reloads.run(ctx, o.Hangups) })
	g.Go(func() error { return serve(server, ledger, o) })
	g.Go(func() error {
		<-ctx.Done()
		return shutdown(server)
	})
	return waitFor(ctx, g, o.Log)
}

// waitFor waits for all tasks; once ctx is done, which the first that fails
// brings about, not for one that hangs: the process ends.
func waitFor(ctx context.Context, g *errgroup.Group, log *slog.Logger) error {
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(endTimeout):
		log.Warn("what does not end is left behind")
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// sample runs the sampler until ctx is done. It does not wait for one that hangs
// in somebody's file system then: the process ends.
func sample(ctx context.Context, modules *moduleWait, s Observer) error {
	done := make(chan error, 1)
	go func() { done <- modules.run(ctx, s) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(shutdownTimeout):
			modules.log.Warn("a scan that does not end is left behind")
			return nil
		}
	}
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // the end may come in the midst of the first scan
	}
	return fmt.Errorf("agent: %w", err)
}

// pageInterval is between two updates of an open page, and two points of its
// charts.
const pageInterval = time.Second

func newPage(snapshot func() *model.Snapshot, r *incident.Recorder, o Options) (*web.Server, error) {
	return web.New(web.Options{Snapshot: snapshot, History: r.History(), Incidents: r, Now: o.Now, Interval: pageInterval, Version: version.Version})
}

// shutdown lets running scrapes finish, and then ends them.
func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}
