package rig

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Visitors are clients that ask again as soon as they are answered, each time by a
// connection of its own, for as long as it takes.
type Visitors struct {
	Served, Failed atomic.Int64

	Stop func() // returns when the last has stopped
}

// Visit starts n of them, until they are stopped or the case ends.
func (c *Case) Visit(n int, url string) *Visitors {
	v := new(Visitors)
	ctx, cancel := context.WithCancel(c.Ctx)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				switch {
				case Fetch(ctx, client, url) == nil:
					v.Served.Add(1)
				case ctx.Err() == nil:
					v.Failed.Add(1)
					Wait(ctx, 100*time.Millisecond)
				}
			}
		})
	}
	v.Stop = func() { cancel(); all.Wait() }
	c.AtEnd(v.Stop)
	return v
}

// Rate is how many requests are answered in a second, over d.
func (v *Visitors) Rate(d time.Duration) float64 {
	began, before := time.Now(), v.Served.Load()
	time.Sleep(d)
	return float64(v.Served.Load()-before) / time.Since(began).Seconds()
}
