package agent

import (
	"context"
	"log/slog"
	"time"
)

// Linger returns a context that is done this long after ctx is, or with end: until
// then a scrape still sees the end of the server in the same pod. Without a
// delay it is ctx.
func Linger(ctx context.Context, delay time.Duration, log *slog.Logger) (lingering context.Context, end context.CancelFunc) {
	if delay <= 0 {
		return ctx, func() {}
	}
	lingering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		log.Info("tcpdiag agent stops after the shutdown delay; a second signal stops it at once", "shutdown-delay", delay)
		time.AfterFunc(delay, cancel)
	})
	return lingering, func() { stop(); cancel() }
}
