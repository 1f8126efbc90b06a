package room

import (
	"sync"
	"sync/atomic"
)

// Pool is the room for the clients of all network namespaces together, in slots of some hundred bytes each. A namespace takes what is
// free; where nothing is, the one that has most is asked to come down to an equal share by another that has less than that.
type Pool struct {
	most int

	mu     sync.Mutex
	taken  int
	shares []*Share
}

// Share is what a namespace has of a Pool.
type Share struct {
	pool  *Pool
	taken int         // with pool.mu
	asked atomic.Bool // to come down
}

// NewPool has that many slots.
func NewPool(slots int) *Pool { return &Pool{most: slots} }

// Join makes a share, of nothing yet.
func (p *Pool) Join() *Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Share{pool: p}
	p.shares = append(p.shares, s)
	return s
}

// Leave gives all of it back, for good.
func (s *Share) Leave() {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= s.taken
	s.taken = 0
	for i, other := range p.shares {
		if other == s {
			p.shares = append(p.shares[:i:i], p.shares[i+1:]...)
			return
		}
	}
}

// Take takes n more slots, all or none. Without a pool there is always room.
func (s *Share) Take(n int) bool {
	if s == nil {
		return true
	}
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken+n <= p.most {
		p.taken += n
		s.taken += n
		return true
	}
	if s.taken+n <= p.equal() {
		greediest := s
		for _, other := range p.shares {
			if other.taken > greediest.taken {
				greediest = other
			}
		}
		greediest.asked.Store(greediest != s)
	}
	return false
}

// Give gives n of its slots back.
func (s *Share) Give(n int) {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.taken -= n
	s.pool.taken -= n
}

// Surplus is how many slots it is to give back now, as another needs them: 0 as long as nobody has asked.
func (s *Share) Surplus() int {
	if !s.asked.Swap(false) {
		return 0
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return max(0, s.taken-s.pool.equal())
}

// equal is an equal share.
func (p *Pool) equal() int { return p.most / max(1, len(p.shares)) }
