package incident

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// Limits bound what a directory holds.
type Limits struct {
	Files int
	Bytes int64
	Age   time.Duration
}

const (
	// maxRemembered bounds one recording in memory.
	maxRemembered = 512 << 10
	// inMemory is how many recordings are kept where there is no directory, besides
	// those that are being written. Where these are more, all share the room of four,
	// but each has leastRemembered.
	inMemory        = 4
	leastRemembered = 64 << 10
)

// entry is a recording that is kept.
type entry struct {
	recording.Summary
	number int
	size   int64
	going  bool        // it is being written
	memory *remembered // nil: in the directory
}

// remembered is a recording in memory. Its records are not changed.
type remembered struct{ records [][]byte }

func (r *remembered) add(record []byte) { r.records = append(r.records, bytes.Clone(record)) }

func (r *remembered) reader() io.Reader {
	parts := make([]io.Reader, 0, len(r.records))
	for _, record := range r.records {
		parts = append(parts, bytes.NewReader(record))
	}
	return io.MultiReader(parts...)
}

// shelf is the list of the recordings, the oldest first. Nothing is read or
// written under its lock.
type shelf struct {
	mu      sync.Mutex
	entries []*entry
	number  int // of the latest
}

// maxNumber has the most digits that an ID may have.
const maxNumber = 999_999_999

// names of recordings: a number that only rises, whatever the clock does.
func nameOf(id string) string { return id + ".tcpdiag" }

// IsID says whether this is the ID of a recording: "000007-20260102T030405Z-8080". One
// is safe as the name of a file and in a URL.
func IsID(id string) bool {
	_, ok := numberOf(id)
	return ok
}

// numberOf is the number in an ID, false for what is none.
func numberOf(id string) (int, bool) {
	number, rest, _ := strings.Cut(id, "-")
	began, port, _ := strings.Cut(rest, "-")
	day, clock, _ := strings.Cut(began, "T")
	clock, utc := strings.CutSuffix(clock, "Z")
	if !utc || !digits(number, 6, 9) || !digits(day, 8, 8) || !digits(clock, 6, 6) || !digits(port, 1, 5) {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	return n, err == nil
}

func digits(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// add gives a recording its ID and its place.
func (s *shelf) add(h *recording.Header) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number++; s.number > maxNumber { // a stranger's file has the last number: every one is listed all the same
		s.number = 1
	}
	h.ID = fmt.Sprintf("%06d-%s-%d", s.number, h.Began.UTC().Format("20060102T150405Z"), h.Port)
	e := &entry{number: s.number, going: true, Summary: h.Summary()}
	s.entries = append(s.entries, e)
	return e
}

// update changes an entry for those who list it.
func (s *shelf) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// remove takes an entry off the list.
func (s *shelf) remove(e *entry) {
	s.update(func() {
		s.entries = slices.DeleteFunc(s.entries, func(other *entry) bool { return other == e })
	})
}

// found are recordings that were there before.
func (s *shelf) found(list []*entry) {
	s.update(func() {
		s.entries = append(s.entries, list...)
		slices.SortFunc(s.entries, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
		for _, e := range list {
			s.number = max(s.number, e.number)
		}
	})
}

// list are the recordings, the latest first.
func (s *shelf) list() []recording.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]recording.Summary, 0, len(s.entries))
	for _, e := range slices.Backward(s.entries) {
		out = append(out, e.Summary)
	}
	return out
}

// of is what is known of a recording; memory is its text where it is kept there.
func (s *shelf) of(id string) (memory io.Reader, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.ID == id && e.memory != nil {
			return e.memory.reader(), true
		}
		if e.ID == id {
			return nil, true
		}
	}
	return nil, false
}

func (s *shelf) isGoing(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.entries, func(e *entry) bool { return e.ID == id && e.going })
}

// room is how many bytes a recording may take in memory.
func (s *shelf) room() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.entries {
		if e.memory != nil {
			n++
		}
	}
	return max(leastRemembered, inMemory*maxRemembered/int64(max(n, inMemory)))
}

// ErrUnknown says that there is no such recording.
var ErrUnknown = fmt.Errorf("no such incident: %w", fs.ErrNotExist)

var errFull = errors.New("the recording has reached its size")

// surplus are the recordings that the limits leave no room for: of the directory, or those in
// memory. What is too old goes; then, one after the other, the oldest of the owner that holds
// most, so that nobody's incidents displace another's. What is being written stays.
func (s *shelf) surplus(l Limits, now time.Time) (out []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var remembered, recorded []*entry
	for _, e := range s.entries {
		switch {
		case e.memory != nil:
			remembered = append(remembered, e)
		case !e.going && now.Sub(e.LastSeen) > l.Age:
			out = append(out, e)
		default:
			recorded = append(recorded, e)
		}
	}
	out = append(out, crowd{remembered}.beyond(func(files int, _ int64) bool { return files > inMemory })...)
	return append(out, crowd{recorded}.beyond(func(files int, bytes int64) bool { return files > l.Files || bytes > l.Bytes })...)
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
	return shares.OwnerOfNetNS(e.NetNS)
}
