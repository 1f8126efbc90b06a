package incident

import (
	"slices"
	"time"
)

// surplus are the recordings that the limits leave no room for: of the directory, or those in
// memory. What is too old goes; then, one after the other, the oldest of the owner that holds
// most, so that nobody's incidents displace another's. What is being written stays.
func (s *shelf) surplus(l Limits, now time.Time) (out []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var remembered, kept []*entry
	for _, e := range s.entries {
		switch {
		case e.memory != nil:
			remembered = append(remembered, e)
		case !e.going && now.Sub(e.LastSeen) > l.Age:
			out = append(out, e)
		default:
			kept = append(kept, e)
		}
	}
	out = append(out, crowd{remembered}.beyond(func(files int, _ int64) bool { return files > inMemory })...)
	return append(out, crowd{kept}.beyond(func(files int, bytes int64) bool { return files > l.Files || bytes > l.Bytes })...)
}

// crowd are recordings that share room, the oldest first.
type crowd struct{ entries []*entry }

// beyond are those that go until there are not too many any more.
func (c crowd) beyond(tooMany func(files int, bytes int64) bool) (out []*entry) {
	var bytes int64
	for _, e := range c.entries {
		bytes += e.size
	}
	left := slices.Clone(c.entries)
	for tooMany(len(left), bytes) {
		i := c.greediest(left, bytes)
		if i < 0 {
			return out
		}
		out = append(out, left[i])
		bytes -= left[i].size
		left = slices.Delete(left, i, i+1)
	}
	return out
}

// greediest is the oldest recording that is not being written, of the owner whose part of the files or
// of the bytes is the largest.
func (c crowd) greediest(left []*entry, bytes int64) int {
	part := make(map[string]float64)
	for _, e := range left {
		part[e.owner()] += max(1/float64(len(left)), float64(e.size)/float64(max(bytes, 1)))
	}
	at := -1
	for i, e := range left {
		if !e.going && (at < 0 || part[e.owner()] > part[left[at].owner()]) {
			at = i
		}
	}
	return at
}

// owner is whose share a recording takes up. Those of older versions do not say it.
func (e *entry) owner() string {
	if e.Owner != "" {
		return e.Owner
	}
	return ownerOfNetNS(e.NetNS)
}
