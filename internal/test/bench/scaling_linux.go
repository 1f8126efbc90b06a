package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// firstOfMany is the first of the ports of the server that has many.
const firstOfMany = 2000

// bySockets grows the table. "Elsewhere" is a walk that matches nothing: what
// the size of the table costs; the difference to the bare dump is what the
// matches cost.
func (b *bench) bySockets(ctx context.Context) error {
	for _, size := range []int{1_000, 10_000, 50_000, 100_000, 190_000} {
		size = min(size, b.Sockets)
		if err := b.table.grow(ctx, size); err != nil {
			return err
		}
		if err := b.oneSize(ctx); err != nil {
			return err
		}
		if size == b.Sockets {
			break
		}
	}
	return nil
}

func (b *bench) oneSize(ctx context.Context) error {
	s, err := watching(ctx, ports(watchedPort))
	if err != nil {
		return err
	}
	defer s.Close()
	exact := exactRequest(watchedPort)
	listeners := dumpRequest(stateListen, extMemory, 0)
	elsewhere := dumpRequest(statesConnected, extInfo, 1)
	theirs := dumpRequest(statesConnected, extInfo, watchedPort)
	short, err := byTurns(50, 20,
		timed{"exact", func() error { return b.kernel.once(exact) }}, sampleOf(s),
		timed{"listeners", func() error { return b.kernel.dump(listeners) }})
	if err != nil {
		return err
	}
	long, err := byTurns(9, 1,
		timed{"elsewhere", func() error { return b.kernel.dump(elsewhere) }},
		timed{"theirs", func() error { return b.kernel.dump(theirs) }}, scanOf(ctx, s))
	if err != nil {
		return err
	}
	b.report.BySockets = append(b.report.BySockets, point{
		N: b.table.size, Sample: median(short[1]), Scan: median(long[2]),
		Bare: []time.Duration{median(short[0]), median(short[2]), median(long[0]), median(long[1])},
	})
	return nil
}

// byListeners watches more and more ports of a process that has 500.
func (b *bench) byListeners(ctx context.Context) error {
	const most = 500
	args, list := []string{"serve", "4096"}, []uint16{}
	for i := range most {
		args, list = append(args, strconv.Itoa(firstOfMany+i)), append(list, uint16(firstOfMany+i))
	}
	server, err := rig.StartChild(ctx, 0, args...)
	if err != nil {
		return err
	}
	defer server.Stop()
	for _, n := range []int{1, 2, 8, 16, 50, 100, 200, most} {
		p, err := measureOne(ctx, n, ports(list[:n]...))
		if err != nil {
			return err
		}
		b.report.ByListeners = append(b.report.ByListeners, p)
	}
	return nil
}

// byNamespaces watches one listener in each of more and more namespaces.
func (b *bench) byNamespaces(ctx context.Context) error {
	points, err := b.namespaces(ctx, 1, 10, 50, 100, 200)
	b.report.ByNamespaces = points
	return err
}

// manyOfBoth shows that the two multiply where all namespaces share one table,
// and that they do not where each has its own.
func (b *bench) manyOfBoth(ctx context.Context) (err error) {
	if b.report.ByBoth, err = b.namespaces(ctx, 1, 10, 50); err != nil {
		return err
	}
	if err := os.WriteFile(ownTables, []byte("4096"), 0o600); err != nil {
		return nil // Linux 6.1 has it
	}
	b.report.ByOwnTables, err = b.namespaces(ctx, 1, 10, 50)
	return errors.Join(err, os.WriteFile(ownTables, []byte("0"), 0o600))
}

// ownTables gives the namespaces that are made from now on a hash table of
// their own with that many buckets.
const ownTables = "/proc/sys/net/ipv4/tcp_child_ehash_entries"

func (b *bench) namespaces(ctx context.Context, sizes ...int) (points []point, err error) {
	servers := make([]*rig.Child, sizes[len(sizes)-1])
	var starting errgroup.Group
	starting.SetLimit(8)
	for i := range servers {
		starting.Go(func() (err error) {
			servers[i], err = rig.StartChild(ctx, unix.CLONE_NEWNET, "serve", "4096", strconv.Itoa(watchedPort))
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	pids := make([]int, len(servers))
	for i, s := range servers {
		defer s.Stop()
		pids[i] = s.PID()
	}
	for _, n := range sizes {
		p, err := measureOne(ctx, n, func(o *schedule.Options) { o.PIDs = pids[:n] })
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

func measureOne(ctx context.Context, n int, change func(*schedule.Options)) (point, error) {
	s, err := watching(ctx, change)
	if err != nil {
		return point{}, err
	}
	defer s.Close()
	samples, err := byTurns(30, 10, sampleOf(s))
	if err != nil {
		return point{}, err
	}
	first, err := byTurns(1, 1, scanOf(ctx, s))
	if err != nil {
		return point{}, err
	}
	scans, err := byTurns(rounds(first[0][0], time.Second), 1, scanOf(ctx, s))
	if err != nil {
		return point{}, err
	}
	return point{N: n, Sample: median(samples[0]), Scan: median(scans[0])}, nil
}
