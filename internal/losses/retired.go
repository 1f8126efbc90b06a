package losses

import (
	"cmp"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Retention is how long the counters of a closed listener are kept.
const Retention = time.Hour

// Retired are the accounts of namespaces that are no longer followed.
type Retired struct{ accounts []*Account }

// Add takes accounts over.
func (r *Retired) Add(list ...*Account) { r.accounts = append(r.accounts, list...) }

// Remove forgets those for which drop answers true.
func (r *Retired) Remove(drop func(*Account) bool) {
	r.accounts = slices.DeleteFunc(r.accounts, drop)
}

// Take gives back those of a namespace that is followed again.
func (r *Retired) Take(netns uint64) (out []*Account) {
	r.Remove(func(a *Account) bool {
		if a.ID.NetNS != netns {
			return false
		}
		out = append(out, a)
		return true
	})
	return out
}

// Expire forgets those that closed too long ago.
func (r *Retired) Expire(now time.Time) {
	r.Remove(func(a *Account) bool { return now.Sub(a.LastSeen) > Retention })
}

// Accounts are all there are.
func (r *Retired) Accounts() []*Account { return r.accounts }

// LatestFirst sorts closed listeners by when they were last seen.
func LatestFirst(list []*Account) {
	slices.SortFunc(list, func(a, b *Account) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.ID.String(), b.ID.String()))
	})
}

// InTurns puts the first of each namespace in front, then the second of each, and so on, and of a namespace's those of each user
// in the same way, so that where thousands come and go they displace nobody else's.
func InTurns[T any](list []T, of func(*T) (netns uint64, user uint32)) []T {
	type owner struct {
		netns uint64
		user  uint32
	}
	list = inTurns(list, func(t *T) owner { netns, user := of(t); return owner{netns, user} })
	return inTurns(list, func(t *T) uint64 { netns, _ := of(t); return netns })
}

func inTurns[T any, K comparable](list []T, owner func(*T) K) []T {
	type turn struct{ round, at int }
	turns, seen := make([]turn, len(list)), make(map[K]int)
	for i := range list {
		of := owner(&list[i])
		turns[i] = turn{seen[of], i}
		seen[of]++
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.round, b.round) })
	out := make([]T, len(list))
	for i, t := range turns {
		out[i] = list[t.at]
	}
	return out
}

// Retain is an account's totals for the metrics.
func (a *Account) Retain() model.RetainedTotals {
	return model.RetainedTotals{ID: a.ID, Totals: a.Totals()}
}
