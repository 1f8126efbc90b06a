package shares

import (
	"log/slog"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// sayAgainAfter is between two lines of the log about one resource.
const sayAgainAfter = time.Minute

// Ledger counts what was refused and taken away, by resource, and says in the log
// whose it was: at most once a minute for each resource.
type Ledger struct {
	log *slog.Logger
	now func() time.Time

	mu        sync.Mutex
	resources []*Resource
}

// NewLedger begins with no resource.
func NewLedger(log *slog.Logger, now func() time.Time) *Ledger { return &Ledger{log: log, now: now} }

// Resource is a line of the ledger. The program names it, never a stranger.
type Resource struct {
	ledger *Ledger
	count  model.Share
	said   time.Time
	unsaid uint64
}

// Resource is the line of that name, a new one where there is none. Without a ledger nothing is counted.
func (l *Ledger) Resource(name string) *Resource {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.resources {
		if r.count.Resource == name {
			return r
		}
	}
	r := &Resource{ledger: l, count: model.Share{Resource: name}}
	l.resources = append(l.resources, r)
	return r
}

// Counts are the lines in the order in which they were made.
func (l *Ledger) Counts() []model.Share {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]model.Share, len(l.resources))
	for i, r := range l.resources {
		out[i] = r.count
	}
	return out
}

// Refused counts something of owner's that found no room.
func (r *Resource) Refused(owner string) { r.note("refused", owner) }

// Evicted counts something of owner's that made room for another.
func (r *Resource) Evicted(owner string) { r.note("evicted", owner) }

func (r *Resource) note(what, owner string) {
	if r == nil {
		return
	}
	l := r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if what == "evicted" {
		r.count.Evicted++
	} else {
		r.count.Refused++
	}
	now := l.now()
	if r.unsaid++; !r.said.IsZero() && now.Sub(r.said) < sayAgainAfter {
		return
	}
	l.log.Warn("a share is used up", "of", r.count.Resource, what, model.Printable(owner), "since_last_line", r.unsaid)
	r.said, r.unsaid = now, 0
}

// Counts counts what each owner has. It bounds nothing itself.
type Counts struct {
	mu    sync.Mutex
	all   int
	owner map[string]int
}

// Add adds to an owner's, or takes away.
func (t *Counts) Add(owner string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner == nil {
		t.owner = make(map[string]int)
	}
	t.all += n
	if t.owner[owner] += n; t.owner[owner] == 0 {
		delete(t.owner, owner)
	}
}

// Most is the owner that has most; "" where nobody has anything.
func (t *Counts) Most() (most string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for owner, n := range t.owner {
		if n > t.owner[most] {
			most = owner
		}
	}
	return most
}
