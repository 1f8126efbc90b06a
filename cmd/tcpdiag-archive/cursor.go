package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

// cursorFile is where the spool remembers what was done of the folder's recordings.
const cursorFile = "cursor.json"

// cursor is what was done: of each recording that is in the folder, by its ID.
type cursor struct {
	Recordings map[string]progress `json:"recordings"`
}

// progress of one recording.
type progress struct {
	Events  int        `json:"events"` // that were put into the spool
	Done    bool       `json:"done,omitempty"`
	Missing *time.Time `json:"gone,omitempty"` // since when it is not in the folder
}

// rememberMissing is how long it is known of a recording that is not in the folder what was sent of
// it: a folder that is away for a while, such as one that is not mounted yet, comes back as it was.
const rememberMissing = 24 * time.Hour

// mostMissing bounds those: the cursor is written with each change, and whoever has one incident after the other makes them.
const mostMissing = 5000

// forgetMissing leaves out those that have been missing for longest.
func (c *cursor) forgetMissing() (changed bool) {
	var missing []string
	for id, p := range c.Recordings {
		if p.Missing != nil {
			missing = append(missing, id)
		}
	}
	if len(missing) <= mostMissing {
		return false
	}
	slices.SortFunc(missing, func(a, b string) int {
		return cmp.Or(c.Recordings[b].Missing.Compare(*c.Recordings[a].Missing), cmp.Compare(b, a))
	})
	for _, id := range missing[mostMissing:] {
		delete(c.Recordings, id)
	}
	return true
}

// loadCursor reads it, and what is in the spool but not in it: a run that was killed
// between the two.
func loadCursor(s *spool) (*cursor, error) {
	c := &cursor{Recordings: make(map[string]progress)}
	data, err := s.readFile(cursorFile, 8<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && !errors.Is(err, errForeign) && !errors.Is(err, syscall.ELOOP):
		return nil, err
	default:
		// One that cannot be read is begun again: what was sent is sent once more, with the same uid.
		if json.Unmarshal(data, c) != nil || c.Recordings == nil {
			s.log.Warn("the cursor cannot be read: what the folder holds is sent again")
			c.Recordings = make(map[string]progress)
		}
	}
	s.each(kindEvent, func(data []byte) {
		var e records.Event
		if json.Unmarshal(data, &e) == nil {
			p := c.Recordings[e.Incident]
			p.Events = max(p.Events, e.Number+1)
			c.Recordings[e.Incident] = p
		}
	})
	s.each(kindRecording, func(data []byte) {
		var m records.Manifest
		if head, _, ok := records.CutLine(data); ok && json.Unmarshal(head, &m) == nil {
			p := c.Recordings[m.ID]
			p.Done = true
			c.Recordings[m.ID] = p
		}
	})
	return c, nil
}

// save writes it whole or not at all.
func (c *cursor) save(s *spool) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return s.write(cursorFile, data)
}
