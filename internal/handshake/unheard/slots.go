package unheard

import (
	"hash/maphash"
	"time"
)

// slots are those of clients, of which strangers send as many as they like. Where all are taken, of the server's address that has most,
// and there of the client's address that has most, one goes, be it the newcomer. Of those that have as many, it is the one whose
// lot is highest, and of these the newcomer.
type slots struct {
	seed  maphash.Seed // of the names, which nobody can foresee
	taken []slot
}

type slot struct {
	sighting
	name, server, host     uint64 // its own, its server's, and its host's at that
	ofItsServer, ofItsHost uint64 // how many are of the same
	lot                    uint64
}

// find is the sighting of a client, nil for none.
func (p *slots) find(e *ends) *sighting {
	if i := p.at(e); i >= 0 {
		return &p.taken[i].sighting
	}
	return nil
}

// forget is of a client that may be there.
func (p *slots) forget(e *ends) {
	if i := p.at(e); i >= 0 {
		p.remove(i)
	}
}

func (p *slots) at(e *ends) int {
	if len(p.taken) == 0 {
		return -1
	}
	name := maphash.Comparable(p.seed, *e)
	for i := range p.taken {
		if p.taken[i].name == name {
			return i
		}
	}
	return -1
}

// add takes in a client that is not there, if it is not the one that goes where more than most would be.
func (p *slots) add(s *sighting, most int, lot uint64) bool {
	if p.taken == nil {
		p.seed, p.taken = maphash.MakeSeed(), make([]slot, 0, mostWaiting+1)
	}
	n := slot{
		sighting: *s, name: maphash.Comparable(p.seed, s.ends), server: maphash.Comparable(p.seed, s.server),
		host: maphash.Comparable(p.seed, ends{s.server, end{addr: s.client.addr.Host()}}), lot: lot,
	}
	for i := range p.taken {
		if t := &p.taken[i]; t.server == n.server {
			t.ofItsServer++
			n.ofItsServer = t.ofItsServer - 1
			if t.host == n.host {
				t.ofItsHost++
				n.ofItsHost = t.ofItsHost - 1
			}
		}
	}
	n.ofItsServer++
	n.ofItsHost++
	if p.taken = append(p.taken, n); len(p.taken) <= most {
		return true
	}
	greediest := p.greediest()
	p.remove(greediest)
	return greediest < most
}

// expire forgets those that were seen before.
func (p *slots) expire(before time.Duration) {
	for i := 0; i < len(p.taken); {
		if p.taken[i].at < before {
			p.remove(i)
		} else {
			i++
		}
	}
}

func (p *slots) greediest() (at int) {
	most := uint64(0)
	for i := range p.taken {
		t := &p.taken[i]
		if has := t.ofItsServer<<48 | t.ofItsHost<<32 | t.lot; has >= most {
			most, at = has, i
		}
	}
	return at
}

func (p *slots) remove(at int) {
	removed := &p.taken[at]
	server, host := removed.server, removed.host
	for i := range p.taken {
		if t := &p.taken[i]; t.server == server {
			t.ofItsServer--
			if t.host == host {
				t.ofItsHost--
			}
		}
	}
	last := len(p.taken) - 1
	p.taken[at] = p.taken[last]
	p.taken = p.taken[:last]
}
