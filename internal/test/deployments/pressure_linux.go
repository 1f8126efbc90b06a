package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// The patience of clients. A SYN that is dropped is repeated after one second.
const (
	toConnect = 900 * time.Millisecond
	toAnswer  = 3 * time.Second
)

// patient are clients with that patience.
func patient(path string) demo.BurstOptions {
	return demo.BurstOptions{
		Address: fmt.Sprintf("127.0.0.1:%d", port), Path: path, ConnectTimeout: toConnect, RequestTimeout: toAnswer,
	}
}

// arrivals are clients that come at a rate, whatever became of those before them.
func arrivals(rate float64, path string, change ...func(*demo.BurstOptions)) pressure {
	o := patient(path)
	o.Rate, o.Clients = rate, int(rate*seconds.Seconds())
	for _, c := range change {
		c(&o)
	}
	return func(b *bench, _ *server) demo.Outcomes { return b.burst(b.ctx, o) }
}

// longer is for what takes its time.
func longer(d time.Duration) func(*demo.BurstOptions) {
	return func(o *demo.BurstOptions) { o.Clients = int(o.Rate * d.Seconds()) }
}

// waves are clients that come at the same moment, again and again.
func waves(n int, every time.Duration, path string, change ...func(*demo.BurstOptions)) pressure {
	return func(b *bench, _ *server) demo.Outcomes {
		o := patient(path)
		o.Clients = n
		for _, c := range change {
			c(&o)
		}
		var t tally
		var wg sync.WaitGroup
		for range int(seconds / every) {
			wg.Go(func() { t.add(b.burst(b.ctx, o)) })
			time.Sleep(every)
		}
		wg.Wait()
		return t.sum()
	}
}

// users come back as soon as they have an answer, or a moment after they got none.
func users(n int, path string, change ...func(*demo.BurstOptions)) pressure {
	return func(b *bench, _ *server) demo.Outcomes {
		o := patient(path)
		o.Clients = 1
		for _, c := range change {
			c(&o)
		}
		ctx, cancel := context.WithTimeout(b.ctx, seconds)
		defer cancel()
		var t tally
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					one := b.burst(ctx, o)
					t.add(one)
					if one.Lost() > 0 {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		return t.sum()
	}
}

// returning are clients that ask, keep the connection, and ask again after a while, by a
// new one where the server has closed it: as browsers and HTTP libraries do.
func returning(rate float64, path string, lasts, think time.Duration) pressure {
	return func(b *bench, _ *server) demo.Outcomes {
		ctx, cancel := context.WithTimeout(b.ctx, lasts)
		defer cancel()
		var t tally
		var wg sync.WaitGroup
		for ctx.Err() == nil {
			wg.Go(func() {
				c := &http.Client{Transport: &http.Transport{}, Timeout: toAnswer}
				defer c.CloseIdleConnections()
				t.add(b.timed(c, path))
				if wait(ctx, think); ctx.Err() == nil {
					t.add(b.timed(c, path))
				}
			})
			wait(ctx, time.Duration(float64(time.Second)/rate))
		}
		wg.Wait()
		return t.sum()
	}
}

// timed is one request.
func (b *bench) timed(c *http.Client, path string) (o demo.Outcomes) {
	began := time.Now()
	if err := getting(c, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))(b.ctx); err != nil {
		kind := demo.BadAnswer
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			kind = demo.ReadTimeout
		}
		o.Count[kind]++
		return o
	}
	o.Count[demo.OK]++
	o.Latencies = []time.Duration{time.Since(began)}
	return o
}

// besides is a load beside connections that send a text and wait.
func besides(n int, text string, p pressure) pressure {
	return func(b *bench, s *server) demo.Outcomes {
		b.hold("tcp", fmt.Sprintf("127.0.0.1:%d", port), n, text, nil)
		return p(b, s)
	}
}

func (b *bench) burst(ctx context.Context, o demo.BurstOptions) demo.Outcomes {
	out, err := demo.Burst(ctx, o)
	if out.LocalError == nil {
		out.LocalError = err
	}
	return out
}

// warm has the server compile what a request needs; of what fails nothing is counted.
func (b *bench) warm(address string, w world) {
	o := demo.BurstOptions{Address: address, Clients: 20, Rate: 50, Path: "/hello?ms=0", ConnectTimeout: toConnect, RequestTimeout: toAnswer}
	if slices.ContainsFunc(w.settings, isTLS) {
		o.TLS = unverified()
	}
	b.burst(b.ctx, o)
}

// tally adds up what several bursts came to.
type tally struct {
	mu  sync.Mutex
	out demo.Outcomes
}

func (t *tally) add(o demo.Outcomes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, n := range o.Count {
		t.out.Count[i] += n
	}
	t.out.Latencies = append(t.out.Latencies, o.Latencies...)
	if t.out.LocalError == nil {
		t.out.LocalError = o.LocalError
	}
}

func (t *tally) sum() demo.Outcomes {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.out.Latencies)
	return t.out
}

func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out = demo.Outcomes{}
}
