package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is how one request ended, as its client saw it.
type Outcome int

// The outcomes. On Linux a full backlog never refuses: Refused means that
// nothing listened.
const (
	OK             Outcome = iota
	ConnectTimeout         // no answer to the SYN in time
	Refused                // ECONNREFUSED
	Reset                  // ECONNRESET or EPIPE, while connecting or later
	ReadTimeout            // connected, but no whole answer in time
	Closed                 // the server closed before a whole answer
	BadAnswer              // an answer other than 2xx, or none that HTTP knows
	Local                  // this machine's own limits: files, ephemeral ports
	Unfinished             // the run ended first, or the client itself gave up
	numOutcomes
)

// String is the outcome in the words of the field.
func (o Outcome) String() string {
	return [numOutcomes]string{
		"ok", "connect timeout", "refused", "reset", "read timeout",
		"closed without answer", "bad answer", "local error", "unfinished",
	}[o]
}

// maxLatencies bounds the memory of a long run: later requests are counted,
// but their latency is not kept.
const maxLatencies = 1 << 20

// Outcomes counts requests by how they ended. With one request a connection
// (the default) it counts clients.
type Outcomes struct {
	Count [numOutcomes]int
	// Latencies of the OK ones, sorted: from the start of the connection for
	// its first request, from the request's own start for later ones.
	Latencies []time.Duration
	// LocalError is the first local error, nil without one.
	LocalError error
}

// Of is the number of requests that ended so.
func (o Outcomes) Of(kind Outcome) int { return o.Count[kind] }

// Total is the number of requests that ended.
func (o Outcomes) Total() int {
	sum := 0
	for _, n := range o.Count {
		sum += n
	}
	return sum
}

// Lost is the number of clients that did not get their answer by any fault but
// their own.
func (o Outcomes) Lost() int { return o.Total() - o.Of(OK) - o.Of(Local) - o.Of(Unfinished) }

// Percentile is the latency that p of the OK requests (0 to 1) did not exceed
// (nearest rank), 0 without any.
func (o Outcomes) Percentile(p float64) time.Duration {
	if len(o.Latencies) == 0 {
		return 0
	}
	rank := int(p*float64(len(o.Latencies))+.999999) - 1
	return o.Latencies[min(max(rank, 0), len(o.Latencies)-1)]
}

// String reads "3 ok, 7 connect timeout; latency p50 0.51 s, p95 1.52 s, max 1.52 s".
func (o Outcomes) String() string {
	parts := []string{fmt.Sprintf("%d ok", o.Of(OK))}
	for kind := ConnectTimeout; kind < numOutcomes; kind++ {
		if n := o.Of(kind); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	text := strings.Join(parts, ", ")
	if len(o.Latencies) > 0 {
		text += fmt.Sprintf("; latency p50 %.2f s, p95 %.2f s, max %.2f s",
			o.Percentile(.5).Seconds(), o.Percentile(.95).Seconds(), o.Percentile(1).Seconds())
	}
	return text
}

func (o *Outcomes) add(kind Outcome, latency time.Duration, err error) {
	o.Count[kind]++
	if kind == OK && len(o.Latencies) < maxLatencies {
		o.Latencies = append(o.Latencies, latency)
	}
	if kind == Local && o.LocalError == nil {
		o.LocalError = err
	}
}

func (o *Outcomes) clone() Outcomes {
	c := *o
	c.Latencies = slices.Clone(o.Latencies)
	slices.Sort(c.Latencies)
	return c
}
