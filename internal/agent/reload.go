package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// reloadTimeout is how long a reload over HTTP may wait for the scan that is
// under way.
const (
	reloadTimeout = 30 * time.Second
	// maxReloads is how many of them may wait for each other.
	maxReloads = 8
)

// errNoConfig is the answer to a reload of an agent without a file.
var errNoConfig = errors.New("nothing to read again: the agent was started without --config")

// reloader reads the configuration file again when it is asked to.
type reloader struct {
	load func(context.Context) error // nil: there is no file
	log  *slog.Logger
	now  func() time.Time
	put  func(put func(*model.Agent)) // takes how it went

	turn  chan struct{} // one reload at a time; who waits reads the file again
	queue chan struct{} // of those asked for over HTTP
	last  time.Time     // of the reading that is in force; for who has the turn
}

// newReloader takes it that the file was read just now.
func newReloader(s Observer, o Options) *reloader {
	r := &reloader{load: o.Reload, log: o.Log, now: o.Now, put: s.PutAgent, turn: make(chan struct{}, 1), queue: make(chan struct{}, maxReloads)}
	if o.Reload != nil {
		r.succeeded()
	}
	return r
}

func (r *reloader) succeeded() {
	r.last = r.now()
	r.ended(&model.ConfigReload{Successful: true, LastSuccess: r.last})
}

func (r *reloader) ended(how *model.ConfigReload) { r.put(func(a *model.Agent) { a.Config = how }) }

// reload logs one line and puts how it went into the facts. A file that is not valid, or
// names what is not there, leaves everything as it was.
func (r *reloader) reload(ctx context.Context, by string) error {
	if r.load == nil {
		r.log.Warn("not reloaded", "by", by, "err", errNoConfig)
		return errNoConfig
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return fmt.Errorf("another reload is under way: %w", ctx.Err())
	}
	if err := r.load(ctx); err != nil {
		r.ended(&model.ConfigReload{LastSuccess: r.last})
		r.log.Error("not reloaded, the former configuration stays in force", "by", by, "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		return err
	}
	r.succeeded()
	r.log.Info("configuration reloaded", "by", by)
	return nil
}

// run reloads at every signal. Those that come during a reload are one more.
func (r *reloader) run(ctx context.Context, hangups <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			_ = r.reload(ctx, "SIGHUP") // it has logged why
		}
	}
}

// serve answers POST /-/reload.
func (r *reloader) serve(enabled bool) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !enabled {
			reply(w, http.StatusForbidden, "reloading over HTTP is off: start the agent with --web.enable-lifecycle, or send it SIGHUP\n")
			return
		}
		select {
		case r.queue <- struct{}{}:
			defer func() { <-r.queue }()
		default:
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusConflict, "too many reloads wait\n")
			return
		}
		// The client that asked may go away: that is no failure of the reload.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), reloadTimeout)
		defer cancel()
		switch err := r.reload(ctx, "HTTP"); {
		case errors.Is(err, errNoConfig):
			reply(w, http.StatusBadRequest, err.Error()+"\n")
		case err != nil:
			reply(w, http.StatusInternalServerError, "not reloaded, the former configuration stays in force:\n"+err.Error()+"\n")
		default:
			reply(w, http.StatusOK, "configuration reloaded\n")
		}
	}
}

// moduleRetry is the time between two attempts to start without tcp_diag.
const moduleRetry = 5 * time.Second

// moduleWait runs a sampler that may lack a kernel module at first: an agent
// that ended would be restarted to no avail, and could not say why it is not
// ready. Somebody has to load the module.
type moduleWait struct {
	log     *slog.Logger
	missing atomic.Pointer[string]
}

// run is s.Run, again while the module is missing.
func (m *moduleWait) run(ctx context.Context, s Observer) error {
	for {
		err := s.Run(ctx)
		if !errors.Is(err, sockdiag.ErrNoModule) {
			return err
		}
		if m.missing.Swap(new(err.Error())) == nil {
			m.log.Error("tcpdiag agent waits for a kernel module", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(moduleRetry):
		}
	}
}

// reason says why the first scan is not done.
func (m *moduleWait) reason() string {
	if why := m.missing.Load(); why != nil {
		return *why
	}
	return "the first scan is not done"
}
