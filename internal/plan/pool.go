package plan

import "time"

// freePool is the load on threads that nothing stands in front of. Every
// request takes the same time, so with n threads a request starts when it has
// come and the n-th before it is done.
//
// A backend is a second row of as many places as there are connections to it: a
// request continues when its thread's own work is done and the n-th before it has
// its answer.
type freePool struct {
	in    Input
	comes []time.Duration // when each request reaches the server
	done  []time.Duration // the last answer, as working memory
}

func newFreePool(in Input) *freePool {
	p := &freePool{in: in, comes: make([]time.Duration, in.Requests), done: make([]time.Duration, in.Requests)}
	for i := range p.comes {
		p.comes[i] = in.startOf(i) + in.RoundTrip/2 + in.RoundTrip
	}
	return p
}

// serves says whether every response arrives in time.
func (p *freePool) serves(threads int) bool {
	for i, t := range p.comes {
		if i >= threads {
			t = max(t, p.done[i-threads])
		}
		t += p.in.ServiceTime
		if n := p.in.BackendConnections; n > 0 {
			if i >= n {
				t = max(t, p.done[i-n])
			}
			t += p.in.BackendTime
		}
		p.done[i] = t
		if p.in.late(p.done[i] - p.comes[i]) {
			return false
		}
	}
	return true
}

// late says whether the response to a request that took this long at the server
// comes too late, as finish does.
func (in *Input) late(atServer time.Duration) bool {
	patience := in.ClientTimeout - 2*in.RoundTrip
	if in.TimeoutFromConnect {
		patience += in.RoundTrip
	}
	return in.ClientTimeout > 0 && atServer+tied(atServer-in.alone()+2*in.RoundTrip) >= patience
}

// peak is the least room that turns nobody away: for those inside when a
// connection is completed, and one more than are inside when a SYN comes,
// because that is when the accept queue is checked first.
func (p *freePool) peak(threads int) int {
	p.serves(threads)
	most, ended := 0, 0
	for i, t := range p.comes {
		for ended < i && p.done[ended]+p.in.Linger <= t {
			ended++
		}
		most = max(most, i+1-ended)
	}
	inside := 0
	ended = 0
	for _, t := range p.comes {
		syn := t - p.in.RoundTrip
		for inside < len(p.comes) && p.comes[inside] < syn {
			inside++
		}
		for ended < inside && p.done[ended]+p.in.Linger <= syn {
			ended++
		}
		most = max(most, inside-ended+1)
	}
	return most
}
