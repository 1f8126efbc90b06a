package memory

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
)

const (
	// deadline is how long one answer may take. From memory that is there, and from swap,
	// it comes within milliseconds.
	deadline = 500 * time.Millisecond
	// slow is what took longer than any memory that is there. After it the owner, and all
	// others that were slow, wait restRatio times as long, so that a tenth of the time at most is lost to them.
	slow      = 50 * time.Millisecond
	restRatio = 10
	// After an answer that did not come the owner waits, twice as long each time: restHangs where the child hangs, restEnds
	// where it has ended.
	restHangs, restEnds, restMost = time.Minute, time.Second, time.Hour
	// usualChildren and maxChildren bound the children, those that were given up and have not ended among them: some
	// 3 MiB each. See hangs.Slots.
	usualChildren, maxChildren = 6, 12
	// maxHistories bounds the owners that are remembered as slow.
	maxHistories = 256
)

// patience says whose memory may be read now. One child at most reads for an owner, or
// was given up while it did.
type patience struct {
	now       func() time.Time
	histories map[string]*history // of owners whose memory is being read, or was slow
	children  *hangs.Slots        // at work or given up, one of an owner
	until     time.Time           // when the next of those that were slow may be read
}

type history struct {
	reading  bool // a child reads for it, or has not ended
	slow     bool
	failures int
	until    time.Time
}

func newPatience(now func() time.Time) *patience {
	return &patience{now: now, histories: make(map[string]*history), children: hangs.NewSlots(1, usualChildren, maxChildren, now)}
}

// begin takes a child's slot for an owner, or says why it has to wait.
func (p *patience) begin(owner string) error {
	h, now := p.histories[owner], p.now()
	if h != nil && (h.reading || now.Before(h.until) || h.slow && now.Before(p.until)) {
		return ErrWaits
	}
	if err := p.children.Begin(owner); err != nil {
		return err
	}
	if h == nil {
		p.forget()
		h = &history{}
		p.histories[owner] = h
	}
	h.reading = true
	return nil
}

// answered takes back the slot after an answer that took that long.
func (p *patience) answered(owner string, took time.Duration) {
	h := p.ended(owner)
	if took <= slow {
		delete(p.histories, owner)
		return
	}
	p.rests(h, restRatio*took, took)
}

// hangs notes that no answer came. The slot is taken until the child has ended.
func (p *patience) hangs(owner string) {
	p.children.Hung(owner)
	p.fails(p.histories[owner], restHangs, deadline)
}

// ends notes that the child has ended instead of an answer, and takes back the slot. To start another takes less than
// what is slow.
func (p *patience) ends(owner string) { p.fails(p.ended(owner), restEnds, slow) }

func (p *patience) fails(h *history, rest, took time.Duration) {
	p.rests(h, min(rest<<min(h.failures, 20), restMost), took)
	h.failures++
}

// rests has an owner wait that long, and all that were slow as long as it takes that no more than a tenth of the time is lost.
func (p *patience) rests(h *history, rest, took time.Duration) {
	h.slow = true
	h.until = p.now().Add(rest)
	if all := p.now().Add(restRatio * took); p.until.Before(all) {
		p.until = all
	}
}

// ended takes back the slot; what is remembered of the owner stays as it was.
func (p *patience) ended(owner string) *history {
	h := p.histories[owner]
	h.reading = false
	p.children.End(owner)
	return h
}

// forget makes room for one more: it drops who may be read again the soonest.
func (p *patience) forget() {
	if len(p.histories) < maxHistories {
		return
	}
	first := ""
	for owner, h := range p.histories {
		if !h.reading && (first == "" || h.until.Before(p.histories[first].until)) {
			first = owner
		}
	}
	delete(p.histories, first)
}
