package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"

	"golang.org/x/sync/errgroup"
)

// wanted is a guest to boot.
type wanted struct {
	name string
	plan plan
}

// wanted are the guests of the run that the flags ask for.
func (l *lab) wanted(only *regexp.Regexp) (all []wanted, err error) {
	for _, p := range plans(l.o.Short) {
		name, err := l.name(p)
		if err != nil {
			return nil, err
		}
		if p.Boots = l.o.narrowed(p.Boots); len(p.Boots) > 0 && only.MatchString(name) {
			all = append(all, wanted{name, p})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no guest is named like %q with a boot like %q", l.o.Only, l.o.Boots)
	}
	return all, nil
}

// boot runs the guests, as many at once as the flags say, prints each when it has
// ended, and says whether all tests passed.
func (l *lab) boot(ctx context.Context, all []wanted) (ok bool, err error) {
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(max(1, l.o.AtOnce))
	ok = true
	var printing sync.Mutex
	for _, w := range all {
		g, err := l.prepare(ctx, w.name, w.plan)
		if err != nil {
			return false, errors.Join(err, running.Wait())
		}
		running.Go(func() error {
			if err := g.run(ctx); err != nil {
				return err
			}
			printing.Lock()
			defer printing.Unlock()
			r, err := readResult(w.name, g.logs(), w.plan.Slow)
			r.print(os.Stdout)
			ok = ok && r.ok()
			return err
		})
	}
	err = running.Wait()
	return ok, err
}
