package connections

// Resets follows the namespace's EstabResets from walk to walk: as many requests
// at most were abandoned by clients that did not wait for the answer.
type Resets struct {
	started bool
	at      uint64 // EstabResets after the latest walk
	during  uint64 // of those, while it lasted and not yet used
	queued  uint64 // clients reset in the queues of listeners that closed, so far
}

// Next takes EstabResets as it was before and after a walk, and how many clients
// have been reset in the accept queues so far (EstabResets has those, too). It
// returns how many abandoned requests the resets since the walk before account
// for. A socket that was reset during the walk before may still have been
// in it: what was not used of those resets counts again.
func (r *Resets) Next(before, after, queued uint64) (most uint64) {
	if r.started {
		moved := after - min(after, r.at)
		ours := queued - min(queued, r.queued)
		most = moved - min(moved, ours) + r.during
	}
	*r = Resets{started: true, at: after, during: after - min(after, max(before, r.at)), queued: queued}
	return most
}

// Use says how many were used of the latest answer: first of those that can not
// count again.
func (r *Resets) Use(most, used uint64) {
	r.during = min(r.during, most-min(most, used))
}
