package demo

import (
	"context"
	"io"
	"time"
)

// paceStep is about how often a paced stream moves on.
const paceStep = 50 * time.Millisecond

// slowly limits a stream to about rate bytes a second; 0 does not limit it.
func slowly(ctx context.Context, r io.Reader, rate int64) io.Reader {
	if rate <= 0 {
		return r
	}
	return &pacedReader{ctx: ctx, r: r, rate: rate, step: max(rate*int64(paceStep)/int64(time.Second), 1)}
}

type pacedReader struct {
	ctx  context.Context // an io.Reader has no other way to be cancelled
	r    io.Reader
	rate int64
	step int64 // most bytes of one read
	owed time.Duration
}

// Read first sits out the time that the last read's bytes take at the rate.
func (p *pacedReader) Read(b []byte) (int, error) {
	if !sleep(p.ctx, p.owed) {
		return 0, p.ctx.Err()
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.step)])
	p.owed = time.Duration(int64(n) * int64(time.Second) / p.rate)
	return n, err
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
