package observability

import (
	"context"
	"fmt"
)

// Thanos is a running part of Thanos, a sidecar or a querier.
type Thanos struct {
	address string
	program *program
}

// StartThanos starts the command that args name, with its HTTP server on address, and waits until it
// is ready. Its files are in dir.
func StartThanos(ctx context.Context, dir, address string, args ...string) (*Thanos, error) {
	p, err := start(ctx, dir, "http://"+address+"/-/ready", []string{"thanos"}, append(args, "--http-address="+address))
	if err != nil {
		return nil, fmt.Errorf("observability: %w", err)
	}
	return &Thanos{address, p}, nil
}

// URL is where people find it.
func (t *Thanos) URL() string { return "http://" + t.address }

// Stop ends it.
func (t *Thanos) Stop() { t.program.stop() }
