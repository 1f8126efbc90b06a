// Package losses says whose packets were dropped. The namespace's counters say
// how many, the sockets' counters say whose; attribution splits the one by the
// other so that no packet is lost or counted twice (conservation). It is pure.
package losses

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Books are one network namespace's: the accounts of its listeners, and what
// belongs to none of them. Over any interval the packets on the accounts and the
// unattributed ones sum to the movement of ListenDrops, exactly.
type Books struct {
	window       time.Duration
	accounts     map[model.ListenerID]*Account
	attribution  *Attribution
	attributed   []Attributed // reused
	unattributed uint64
	counts       NamespaceCounts // as of the latest tick
	unwatched    uint64          // likewise
	number       int             // of the latest checkpoint
	history      history
}

// NewBooks makes empty ones.
func NewBooks(window time.Duration) *Books {
	return &Books{window: window, accounts: make(map[model.ListenerID]*Account)}
}

// Open reports whether the counters are followed: attribution has begun.
func (b *Books) Open() bool { return len(b.history.past) > 0 }

// Accounts are all there are.
func (b *Books) Accounts() map[model.ListenerID]*Account { return b.accounts }

// Account finds or opens the account of a listening address.
func (b *Books) Account(id model.ListenerID) *Account {
	a, ok := b.accounts[id]
	if !ok {
		a = NewAccount(id, b.window)
		a.ledger.number = b.number
		b.accounts[id] = a
	}
	return a
}

// Put takes an account over from other books.
func (b *Books) Put(a *Account) {
	a.ledger.number = b.number
	a.ledger.marks = nil
	a.ledger.dirty = true
	b.accounts[a.ID] = a
}

// Remove forgets an account.
func (b *Books) Remove(id model.ListenerID) { delete(b.accounts, id) }

// Watching reports whether an address that is on no watchlist has its drops counted:
// known, and ok where that is decided.
func (b *Books) Watching(id model.ListenerID) (watched, known bool) {
	a, known := b.accounts[id]
	return known && !a.unwatched, known
}

// Dismiss says which accounts are watched from now on; the drops of the others'
// sockets are nobody's.
func (b *Books) Dismiss(watched func(*Account) bool) {
	for _, a := range b.accounts {
		a.unwatched = !watched(a)
	}
}

// Checkpoint follows a tick whose counts are among the counters, which are not
// kept.
func (b *Books) Checkpoint(at time.Time, counters model.Counters) {
	b.number++
	var earlier packed
	if b.Open() {
		earlier = b.history.last().counters
	}
	b.history.add(Checkpoint{
		Number: b.number, At: at, counters: pack(counters, earlier, b.history.lists() >= mostLists), Unattributed: b.unattributed, Unwatched: b.unwatched,
	}, b.window)
	for _, a := range b.accounts {
		a.ledger.close(b.number, b.history.first().Number)
	}
}

// Reset begins again, as when a namespace is no longer followed.
func (b *Books) Reset() {
	b.attribution, b.history = nil, history{}
}

// QueueResets are all clients that were reset in the queues of listeners that
// closed.
func (b *Books) QueueResets() (sum uint64) {
	for _, a := range b.accounts {
		sum += a.ledger.queueResets
	}
	return sum
}
