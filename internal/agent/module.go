package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

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
