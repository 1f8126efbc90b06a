package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// perProcess is how many connections one process holds, within 20,000 descriptors.
const perProcess = 19_000

// firstPort is the first of the servers' that only fill the table.
const firstPort = 9000

// bulk are connections that nobody watches, over the loopback of the calling
// program: a process for each end of 19,000.
type bulk struct{ children []*rig.Child }

// grow adds socket ends, four pairs of processes at a time.
func (b *bulk) grow(ctx context.Context, ends int) error {
	var opening errgroup.Group
	opening.SetLimit(4)
	for p := firstPort; ends > 1; p++ {
		server, err := rig.StartChild(ctx, 0, "serve", "4096", fmt.Sprint(p))
		if err != nil {
			return err
		}
		b.children = append(b.children, server)
		client, err := rig.StartChild(ctx, 0, "dial")
		if err != nil {
			return err
		}
		b.children = append(b.children, client)
		n := min(perProcess, ends/2)
		ends -= 2 * n
		opening.Go(func() error {
			var both errgroup.Group
			both.Go(func() error { return server.Do(0, n) })
			both.Go(func() error { return client.Do(p, n) })
			return both.Wait()
		})
	}
	return opening.Wait()
}

func (b *bulk) stop() {
	for _, c := range b.children {
		c.Stop()
	}
	b.children = nil
}
