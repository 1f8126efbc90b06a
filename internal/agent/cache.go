package agent

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// cachedFor is how old an answer of the same snapshot may be: it holds its own age.
	cachedFor = 250 * time.Millisecond
	// maxCached is how many answers are kept, maxCachedBytes how large they may be together.
	maxCached      = 16
	maxCachedBytes = 4 << 20
)

// cache are answers that were made just now: what many ask for is made once.
type cache struct {
	now func() time.Time

	mu      sync.Mutex
	answers map[string]*cachedAnswer
}

// cachedAnswer is one of a snapshot. Its lock is held while it is made, never while it is sent.
type cachedAnswer struct {
	asked time.Time // and size, under the lock of all
	size  int

	mu   sync.Mutex
	of   *model.Snapshot
	made time.Time
	*answer
}

// slot is where the answers of one question are kept; what nobody asks for any more makes room. Where
// there is none the answer is not kept.
func (c *cache) slot(question string) *cachedAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.answers[question]; p != nil {
		p.asked = c.now()
		return p
	}
	if len(c.answers) == maxCached {
		c.forget()
	}
	p := &cachedAnswer{asked: c.now()}
	if len(c.answers) < maxCached {
		c.answers[question] = p
	}
	return p
}

// forget leaves out what nobody has asked for lately.
func (c *cache) forget() {
	maps.DeleteFunc(c.answers, func(_ string, p *cachedAnswer) bool { return c.now().Sub(p.asked) >= cachedFor })
}

// holds notes how large an answer is, and reports whether there is room for it.
func (c *cache) holds(p *cachedAnswer, size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.size = 0
	room := func() bool {
		all := size
		for _, other := range c.answers {
			all += other.size
		}
		return all <= maxCachedBytes
	}
	if !room() {
		c.forget()
	}
	if !room() {
		return false
	}
	p.size = size
	return true
}

// fresh is the answer that is kept of a snapshot, nil where there is none.
func (c *cache) fresh(question string, of *model.Snapshot) *answer {
	p := c.slot(question)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fresh(of, c.now())
}

func (p *cachedAnswer) fresh(of *model.Snapshot, now time.Time) *answer {
	if p.answer == nil || p.of != of || now.Sub(p.made) >= cachedFor {
		return nil
	}
	return p.answer
}

// make is the answer that another has made meanwhile, or a new one.
func (c *cache) make(question string, of *model.Snapshot, h http.Handler, r *http.Request) *answer {
	p := c.slot(question)
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.fresh(of, c.now()); a != nil {
		return a
	}
	a := &answer{header: make(http.Header), code: http.StatusOK}
	h.ServeHTTP(a, r)
	p.answer, p.of, p.made = nil, of, c.now()
	if a.code == http.StatusOK && c.holds(p, a.body.Len()) {
		p.answer = a
	}
	return a
}
