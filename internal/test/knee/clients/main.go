// Command clients is a load of clients that keep their own account: each sends one request on
// a connection of its own, at a rate that rises evenly, or all of them come at once.
//
//	clients -url http://127.0.0.1:8080/hello -from 10 -to 60 -for 20s -connect 5s -request 5s
//	clients -url http://127.0.0.1:8080/hello -at-once 40
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// account is what the clients counted.
type account struct {
	Offered        int     `json:"offered"`
	OK             int     `json:"ok"`
	ConnectTimeout int     `json:"connect_timeout"`
	RequestTimeout int     `json:"request_timeout"`
	Other          int     `json:"other"`
	Late           int     `json:"late"` // answered, but after -slo
	P50            float64 `json:"p50_seconds"`
	P99            float64 `json:"p99_seconds"`
	Max            float64 `json:"max_seconds"`
	LatestBegin    float64 `json:"latest_begin_seconds"` // the largest delay of this program itself
}

type load struct {
	url              string
	from, to         float64 // clients a second
	lasts            time.Duration
	atOnce           int
	connect, request time.Duration
	slo, gap         time.Duration

	mu    sync.Mutex
	sum   account
	times []float64
}

func main() {
	var l load
	flag.StringVar(&l.url, "url", "http://127.0.0.1:8080/", "what is asked for")
	flag.Float64Var(&l.from, "from", 10, "clients a second at the begin")
	flag.Float64Var(&l.to, "to", 0, "clients a second at the end; 0: as at the begin")
	flag.DurationVar(&l.lasts, "for", 10*time.Second, "how long clients come")
	flag.IntVar(&l.atOnce, "at-once", 0, "clients that come at once, instead")
	flag.DurationVar(&l.gap, "gap", 0, "between two of the clients that come at once")
	flag.DurationVar(&l.connect, "connect", 5*time.Second, "how long a client waits for its connection")
	flag.DurationVar(&l.request, "request", 60*time.Second, "how long it waits for its answer, connecting included")
	flag.DurationVar(&l.slo, "slo", 0, "an answer after more than this is late")
	flag.Parse()
	if l.to == 0 {
		l.to = l.from
	}
	l.run()
	if err := json.NewEncoder(os.Stdout).Encode(l.account()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// begins is when client i comes: the number of clients until t is from·t + (to−from)·t²/2·lasts.
func (l *load) begins(i int) (at time.Duration, more bool) {
	if l.atOnce > 0 {
		return time.Duration(i) * l.gap, i < l.atOnce
	}
	d := l.lasts.Seconds()
	slope := (l.to - l.from) / d
	t := float64(i) / l.from
	if math.Abs(slope) > 1e-9 {
		t = (math.Sqrt(l.from*l.from+2*slope*float64(i)) - l.from) / slope
	}
	return time.Duration(t * float64(time.Second)), t < d
}

func (l *load) run() {
	var clients sync.WaitGroup
	began := time.Now()
	for i := 0; ; i++ {
		at, more := l.begins(i)
		if !more {
			break
		}
		time.Sleep(time.Until(began.Add(at)))
		l.sum.LatestBegin = max(l.sum.LatestBegin, time.Since(began.Add(at)).Seconds())
		l.sum.Offered++
		clients.Go(l.client)
	}
	clients.Wait()
}

var errConnect = errors.New("no connection")

func (l *load) client() {
	began := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), l.request)
	defer stop()
	dialer := &net.Dialer{Timeout: l.connect}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, errors.Join(errConnect, err)
		}
		return c, nil
	}}
	err := get(ctx, &http.Client{Transport: transport}, l.url)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	late := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case err == nil:
		l.sum.OK++
		l.times = append(l.times, took.Seconds())
		if l.slo > 0 && took > l.slo {
			l.sum.Late++
		}
	case late && errors.Is(err, errConnect):
		l.sum.ConnectTimeout++
	case late:
		l.sum.RequestTimeout++
	default:
		l.sum.Other++
	}
}

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func (l *load) account() account {
	if n := len(l.times); n > 0 {
		slices.Sort(l.times)
		l.sum.P50, l.sum.P99, l.sum.Max = l.times[n/2], l.times[n*99/100], l.times[n-1]
	}
	return l.sum
}
