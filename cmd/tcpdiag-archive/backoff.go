package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is between two attempts: twice as long after each failure, at random within
// its upper half, so that the archivers of a cluster do not come back all at once.
type backoff struct{ least, most, next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait returns when it is time for another attempt, false when ctx is done.
func (b *backoff) wait(ctx context.Context) bool {
	b.next = min(max(b.least, 2*b.next), b.most)
	t := time.NewTimer(b.next/2 + rand.N(b.next/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
