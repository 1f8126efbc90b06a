package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// Load is clients that come and go; it ends by itself, with what became of them.
type Load func(*Case, *Server) demo.Outcomes

// Lasts is how long a load lasts: two seconds for it to come, two for the snapshot,
// and what the machine takes.
const Lasts = 7 * time.Second

// The patience of clients. A SYN that is dropped is repeated after one second.
const (
	ToConnect = 900 * time.Millisecond
	ToAnswer  = 3 * time.Second
)

// Patient are clients with that patience.
func Patient(path string) demo.BurstOptions {
	return demo.BurstOptions{
		Address: fmt.Sprintf("127.0.0.1:%d", Port), Path: path, ConnectTimeout: ToConnect, RequestTimeout: ToAnswer,
	}
}

// Arrivals are clients that come at a rate, whatever became of those before them.
func Arrivals(rate float64, path string, change ...func(*demo.BurstOptions)) Load {
	o := Patient(path)
	o.Rate, o.Clients = rate, int(rate*Lasts.Seconds())
	for _, f := range change {
		f(&o)
	}
	return func(c *Case, _ *Server) demo.Outcomes { return Burst(c.Ctx, o) }
}

// Longer is for arrivals that take their time.
func Longer(d time.Duration) func(*demo.BurstOptions) {
	return func(o *demo.BurstOptions) { o.Clients = int(o.Rate * d.Seconds()) }
}

// Waves are clients that come at the same moment, again and again.
func Waves(n int, every time.Duration, path string, change ...func(*demo.BurstOptions)) Load {
	return func(c *Case, _ *Server) demo.Outcomes {
		o := Patient(path)
		o.Clients = n
		for _, f := range change {
			f(&o)
		}
		return Again(c.Ctx, int(Lasts/every), every, o)
	}
}

// Again is a load that comes n times.
func Again(ctx context.Context, n int, every time.Duration, o demo.BurstOptions) demo.Outcomes {
	var t Tally
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { t.Add(Burst(ctx, o)) })
		if i < n-1 {
			time.Sleep(every)
		}
	}
	wg.Wait()
	return t.Sum()
}

// Users come back as soon as they have an answer, or a moment after they got none.
func Users(n int, path string, change ...func(*demo.BurstOptions)) Load {
	return func(c *Case, _ *Server) demo.Outcomes {
		o := Patient(path)
		o.Clients = 1
		for _, f := range change {
			f(&o)
		}
		ctx, cancel := context.WithTimeout(c.Ctx, Lasts)
		defer cancel()
		var t Tally
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					one := Burst(ctx, o)
					t.Add(one)
					if one.Lost() > 0 {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		return t.Sum()
	}
}

// Returning are clients that ask, keep the connection, and ask again after a while, by a
// new one where the server has closed it: as browsers and HTTP libraries do.
func Returning(rate float64, path string, lasts, think time.Duration) Load {
	return func(c *Case, _ *Server) demo.Outcomes {
		ctx, cancel := context.WithTimeout(c.Ctx, lasts)
		defer cancel()
		var t Tally
		var wg sync.WaitGroup
		for ctx.Err() == nil {
			wg.Go(func() {
				client := &http.Client{Transport: &http.Transport{}, Timeout: ToAnswer}
				defer client.CloseIdleConnections()
				t.Add(Timed(c.Ctx, client, path))
				if Wait(ctx, think); ctx.Err() == nil {
					t.Add(Timed(c.Ctx, client, path))
				}
			})
			Wait(ctx, time.Duration(float64(time.Second)/rate))
		}
		wg.Wait()
		return t.Sum()
	}
}

// Besides is a load beside connections that send a text and wait.
func Besides(n int, text string, l Load) Load {
	return func(c *Case, s *Server) demo.Outcomes {
		c.Hold(Clients{N: n, Text: text})
		return l(c, s)
	}
}

// Alongside counts the clients of the one load while those of the other come, too.
func Alongside(uncounted, l Load) Load {
	return func(c *Case, s *Server) demo.Outcomes {
		go uncounted(c, s)
		return l(c, s)
	}
}

// Timed is one request to the server of the case.
func Timed(ctx context.Context, client *http.Client, path string) (o demo.Outcomes) {
	began := time.Now()
	if err := Fetch(ctx, client, fmt.Sprintf("http://127.0.0.1:%d%s", Port, path)); err != nil {
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

// TimedFrom is one from a local port.
func (c *Case) TimedFrom(local int, path string) demo.Outcomes {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: local}, Timeout: ToConnect}
	return Timed(c.Ctx, &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: ToAnswer}, path)
}

// Fetch reads an answer, which must be 200, to its end.
func Fetch(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	return Whole(client, request)
}

// Whole is the same for any request.
func Whole(client *http.Client, request *http.Request) error {
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", request.URL, answer.Status)
	}
	return err
}

// Burst is a load of the demo's clients.
func Burst(ctx context.Context, o demo.BurstOptions) demo.Outcomes {
	out, err := demo.Burst(ctx, o)
	if out.LocalError == nil {
		out.LocalError = err
	}
	return out
}

// Tally adds up what several bursts came to.
type Tally struct {
	mu  sync.Mutex
	out demo.Outcomes
}

// Add counts some more.
func (t *Tally) Add(o demo.Outcomes) {
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

// Sum is all that was added.
func (t *Tally) Sum() demo.Outcomes {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.out.Latencies)
	return t.out
}

// Reset forgets them.
func (t *Tally) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out = demo.Outcomes{}
}
