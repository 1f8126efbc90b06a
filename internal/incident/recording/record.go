// Package recording is the format of a recording: its records (Header, Frame, Tick, End),
// each a line with its checksum, frames as merge patches on the one before; the reader of
// them, which is bounded, as anybody may have written one; and a frame judged again.
package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Schema is what the first line of a recording says it is, with the version of the format: it is raised
// where programs of before would misread what is written. A name that they do not know they pass over.
//
//	1  zeros are written; for how long nothing was accepted is not
//	2  the names are this package's own; a value that is not there is zero
const (
	Schema     = schemaName + "2"
	schemaName = "tcpdiag.recording/v"
	latest     = 2
)

// Header is the first record: whose incident it is.
type Header struct {
	Schema  string    `json:"schema"`
	ID      string    `json:"id"`
	Version string    `json:"version"` // of the program that recorded
	Host    string    `json:"host"`
	Kernel  string    `json:"kernel"`
	Began   time.Time `json:"began"`
	Address string    `json:"address"` // of the listener, "port 8080" where none was there
	Port    uint16    `json:"port"`
	NetNS   uint64    `json:"netns"`
	Owner   string    `json:"owner"` // whose share it is, see ownerOf
	Base    Counted   `json:"base"`  // what was counted before it began
}

// Frame is the listener at one moment, with the evidence of its verdict.
type Frame struct {
	At       time.Time      `json:"At"`
	Moment   time.Time      // the same, also on the monotonic clock; it is not written, see moment
	Listener model.Listener `json:"Listener"`
	Counted  Counted        `json:"Counted"`
	Points   []Point        `json:"Points"` // seconds since the frame before, the first also those before
	// Samples of the accept queue, likewise, in the first two minutes.
	Samples []Samples `json:"Samples"`
	// SameShown: the verdict shown before this one is that of the frame before,
	// and not written again.
	SameShown bool `json:"SameShown"`
}

// Tick are the seconds since the record before, where no frame is due.
type Tick struct {
	At     time.Time `json:"at"`
	Points []Point   `json:"points"`
	// Samples of the accept queue since then, in the first two minutes.
	Samples []Samples `json:"samples"`
	// Counted is there every ten seconds where it has changed, and in the last.
	Counted *Counted `json:"counted"`
}

// End is the last record; one that was killed has not written it.
type End struct {
	At      time.Time `json:"at"`
	Reason  string    `json:"reason"`
	Summary Summary   `json:"summary"`
}

// The reasons for which a recording ends.
const (
	EndOver        = "over"        // a minute without trouble
	EndClosed      = "closed"      // the listener was closed for a minute
	EndStopped     = "stopped"     // the agent was asked to stop
	EndDisplaced   = "displaced"   // others' incidents had less than their share of what is recorded at once
	EndInterrupted = "interrupted" // the agent was killed; found at its next start, or by a reader
)

// Silent is since when nobody writes a recording any more: while it lasts an agent adds to its file every
// half second, or where it cannot, sets the time of its last change.
const Silent = 2 * time.Minute

// Summary is a recording in a line.
type Summary struct {
	ID       string       `json:"id"`
	Address  string       `json:"address"`
	Port     uint16       `json:"port"`
	NetNS    uint64       `json:"netns"`
	Owner    string       `json:"owner"`
	Pod      *model.Pod   `json:"pod"` // once it is known
	Began    time.Time    `json:"began"`
	Ended    time.Time    `json:"ended"`   // zero while it lasts
	Status   model.Status `json:"status"`  // the worst
	Cause    model.Cause  `json:"cause"`   // of most that was lost
	Text     string       `json:"text"`    // of the worst verdict with that cause
	Dropped  uint64       `json:"dropped"` // packets, never clients
	Frames   int          `json:"frames"`
	LastSeen time.Time    `json:"last_seen"`
	Reason   string       `json:"reason"`

	LastTrouble time.Time `json:"last_trouble"`
	TurnedAway  *uint64   `json:"turned_away"` // clients; nil where handshakes were not followed
	Proxies     int       `json:"proxies"`     // addresses, three at most, that nearly all clients came from while some were turned away; 0: they were more
	Open        uint64    `json:"open"`        // clients that have had no answer and are not known to have left

	dominant dominant
}

// CutOff ends the summary of a recording that has no end, and that nobody writes any more.
func (s *Summary) CutOff() {
	if s.Ended.IsZero() {
		s.Ended, s.Reason = s.LastSeen, EndInterrupted
	}
}

// Summary is that of a recording of which nothing else was read yet.
func (h *Header) Summary() Summary {
	return Summary{
		ID: h.ID, Address: h.Address, Port: h.Port, NetNS: h.NetNS, Owner: h.Owner, Began: h.Began, LastSeen: h.Began,
		dominant: dominant{base: h.Base},
	}
}

// See takes a frame into the summary.
func (s *Summary) See(f *Frame) {
	v := &f.Listener.Verdict
	if p := f.Listener.Pod; p != nil {
		s.Pod = new(*p)
	}
	if s.Frames == 0 || v.Status > s.Status {
		s.Status, s.Text = v.Status, v.Summary
	}
	s.dominant.see(f)
	s.Count(&f.Counted)
	if v.Status >= model.StatusSaturated {
		s.LastTrouble = f.At
	}
	if l := f.Listener.Losses; v.Status >= model.StatusLosing && l != nil && l.Clients != nil {
		s.Proxies = len(l.Clients.Proxies)
	}
	s.Frames++
	s.seconds(f.At, f.Points)
}

// Count takes totals into the summary.
func (s *Summary) Count(c *Counted) {
	cause, text := s.dominant.of(s.Status, c)
	s.Cause, s.Text = cause, cmp.Or(text, s.Text)
	if now := Since(&s.dominant.base, c).Clients; now != nil {
		s.TurnedAway, s.Open = new(now.TurnedAway()), now.Open()
	}
}

// Pass takes what came between two frames, or behind the last.
func (s *Summary) Pass(t *Tick) {
	if t.Counted != nil {
		s.Count(t.Counted)
	}
	s.seconds(t.At, t.Points)
}

// seconds takes points into the summary.
func (s *Summary) seconds(at time.Time, points []Point) {
	for _, p := range points {
		if p.At < s.Began.Unix()-1 {
			continue
		}
		s.Dropped += uint64(p.Drops)
		if at := time.Unix(p.At, 0).UTC(); p.Status >= model.StatusSaturated && at.After(s.LastTrouble) {
			s.LastTrouble = at
		}
	}
	s.LastSeen = at
}

// MarshalJSON makes a point an array, as there are sixty of them a minute: time,
// status, drops, queue, clients inside, requests in flight, the use of each stage. The
// cause is there where packets were dropped.
func (p Point) MarshalJSON() ([]byte, error) {
	out := fmt.Appendf(nil, "[%d,%d,%d,%d,%d,%d", p.At, p.Status, p.Drops, p.Peak, p.Inside, p.InFlight)
	for _, used := range p.Used {
		out = fmt.Appendf(out, ",%d", used)
	}
	if p.Cause != model.CauseNone {
		out = fmt.Appendf(out, ",%q", p.Cause)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON reads that array, or an older one's first five numbers.
func (p *Point) UnmarshalJSON(b []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*p = UnknownPoint(0)
	if n := len(all); n > 0 && all[n-1][0] == '"' {
		if err := json.Unmarshal(all[n-1], &p.Cause); err != nil {
			return err
		}
		all = all[:n-1]
	}
	var status int
	into := []any{&p.At, &status, &p.Drops, &p.Peak, &p.Inside, &p.InFlight}
	for i := range p.Used {
		into = append(into, &p.Used[i])
	}
	for i := range min(len(all), len(into)) {
		if err := json.Unmarshal(all[i], into[i]); err != nil {
			return err
		}
	}
	p.Status = model.Status(status)
	return nil
}

var errImpossible = errors.New("impossible values")

// check refuses what no listener can be, before anybody counts with it.
func (f *Frame) check() error {
	for _, l := range []*model.Listener{&f.Listener, before(&f.Listener)} {
		if l != nil && !possible(l) {
			return errImpossible
		}
	}
	if b := f.Listener.Basis; b != nil && b.Shown != nil && !known(b.Shown.Verdict.Status) {
		return errImpossible
	}
	return checkPoints(f.Points)
}

func (t *Tick) check() error { return checkPoints(t.Points) }

// longestCause is more than any cause's name has, also a later version's.
const longestCause = 64

func checkPoints(points []Point) error {
	for _, p := range points {
		if !known(p.Status) || len(p.Cause) > longestCause {
			return errImpossible
		}
	}
	return nil
}

func before(l *model.Listener) *model.Listener {
	if l.Basis == nil {
		return nil
	}
	return l.Basis.Before
}

func known(s model.Status) bool { return s >= 0 && s < model.NumStatuses }

func possible(l *model.Listener) bool {
	if !known(l.Verdict.Status) {
		return false
	}
	if q := l.AcceptQueue; q != nil && (q.Limit < 0 || q.Length < 0) {
		return false
	}
	if c := l.Connections; c != nil {
		for _, n := range c.Phases {
			if n < 0 {
				return false
			}
		}
	}
	return true
}
