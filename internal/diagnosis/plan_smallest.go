package diagnosis

import (
	"fmt"
	"sort"
	"time"
)

// smallest looks for the least limits under which every client is served and
// none has to knock twice. Settings that work only because dropped SYNs are
// repeated are not offered: whether a client then gets in is luck.
//
// Threads come first, as if there were no limit in front of them. What is
// inside at the peak is then shared out between the other two: the accept
// queue keeps the given acceptCount, because it also absorbs what comes faster
// than accept() is called; maxConnections takes the rest but is not raised
// above the given one; what does not fit raises acceptCount. Taking 1 from any
// of the three turns somebody away, unless it is already 1.
func smallest(in PlanInput) (limits *PlanLimits, why string) {
	alone := in.ServiceTime + in.RoundTrip
	if !in.TimeoutFromConnect {
		alone += in.RoundTrip
	}
	if in.ClientTimeout > 0 && alone >= in.ClientTimeout {
		return nil, fmt.Sprintf("a request alone takes %s, and its client waits no longer than %s", inWords(alone), inWords(in.ClientTimeout))
	}
	if in.ConnectTimeout > 0 && in.RoundTrip > in.ConnectTimeout {
		return nil, fmt.Sprintf("the round trip of %s is longer than the connect timeout (%s)", inWords(in.RoundTrip), inWords(in.ConnectTimeout))
	}
	pool := newFreePool(in)
	threads := 1 + sort.Search(in.Requests-1, func(n int) bool { return pool.serves(n + 1) })
	peak := pool.peak(threads)
	return raiseAcceptCount(in, shareOut(in, threads, peak), peak)
}

// shareOut makes room for peak clients in front of and at the threads.
func shareOut(in PlanInput, threads, peak int) *PlanLimits {
	most := in.MaxConnections
	if most < 0 {
		most = noLimit
	}
	connections := min(peak-1-in.AcceptCount, most)
	connections = max(connections, threads)
	return &PlanLimits{
		Threads:        threads,
		MaxConnections: connections,
		AcceptCount:    max(1, peak-1-connections),
	}
}

// raiseAcceptCount proves the limits by simulation. Half-open connections may
// need more acceptCount when syncookies are off; maxConnections then needs less.
func raiseAcceptCount(in PlanInput, limits *PlanLimits, peak int) (*PlanLimits, string) {
	serves := func(acceptCount int) bool {
		try := *limits
		try.AcceptCount = acceptCount
		p := simulate(in.withLimits(try))
		return p.Outcomes.Failed() == 0 && p.Dropped == PlanDrops{}
	}
	least := limits.AcceptCount
	if serves(least) {
		return limits, ""
	}
	n := sort.Search(max(0, in.Requests-least), func(n int) bool { return serves(least + 1 + n) })
	if n == max(0, in.Requests-least) {
		return nil, "SYNs are dropped at three quarters of tcp_max_syn_backlog whatever the limits are: switch tcp_syncookies on"
	}
	limits.AcceptCount = least + 1 + n
	limits.MaxConnections = max(limits.Threads, min(limits.MaxConnections, peak-1-limits.AcceptCount))
	return limits, ""
}

// withLimits is the same load on other limits, none of them clamped.
func (in PlanInput) withLimits(l PlanLimits) PlanInput {
	in.Threads, in.MaxConnections, in.AcceptCount = l.Threads, l.MaxConnections, l.AcceptCount
	in.Somaxconn = max(in.Somaxconn, l.AcceptCount)
	return in
}

// freePool is the load on threads that nothing stands in front of. Every
// request takes the same time, so with n threads a request starts when it has
// come and the n-th before it is done.
type freePool struct {
	in    PlanInput
	comes []time.Duration // when each request reaches the server
	done  []time.Duration // the last answer, as working memory
}

func newFreePool(in PlanInput) *freePool {
	p := &freePool{in: in, comes: make([]time.Duration, in.Requests), done: make([]time.Duration, in.Requests)}
	for i := range p.comes {
		p.comes[i] = in.startOf(i) + in.RoundTrip/2 + in.RoundTrip
	}
	return p
}

// serves says whether every response arrives in time.
func (p *freePool) serves(threads int) bool {
	patience := p.in.ClientTimeout - 2*p.in.RoundTrip
	if p.in.TimeoutFromConnect {
		patience += p.in.RoundTrip
	}
	for i, t := range p.comes {
		if i >= threads {
			t = max(t, p.done[i-threads])
		}
		p.done[i] = t + p.in.ServiceTime
		wait := p.done[i] - p.comes[i]
		if p.in.ClientTimeout > 0 && wait+tied(wait-p.in.ServiceTime+2*p.in.RoundTrip) >= patience {
			return false
		}
	}
	return true
}

// peak is the least room that turns nobody away: for those inside when a
// connection is completed, and one more than are inside when a SYN comes,
// because that is when the accept queue is looked at first.
func (p *freePool) peak(threads int) int {
	p.serves(threads)
	most, gone := 0, 0
	for i, t := range p.comes {
		for gone < i && p.done[gone] <= t {
			gone++
		}
		most = max(most, i+1-gone)
	}
	inside := 0
	gone = 0
	for _, t := range p.comes {
		syn := t - p.in.RoundTrip
		for inside < len(p.comes) && p.comes[inside] < syn {
			inside++
		}
		for gone < inside && p.done[gone] <= syn {
			gone++
		}
		most = max(most, inside-gone+1)
	}
	return most
}
