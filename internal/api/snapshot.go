// Package api holds the JSON documents of version 1 as Go types: the one
// definition of their fields, for writers and readers. A
// document only grows: no field changes its meaning or is removed.
package api

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// SnapshotSchema names the JSON document. It only grows: no field of it ever
// changes its meaning or goes away.
const SnapshotSchema = "tcpdiag.snapshot/v1"

// Snapshot is everything as it was at one moment, of schema SnapshotSchema: durations are in
// seconds, and what is not known is left out, never zero.
type Snapshot struct {
	Schema          string        `json:"schema"`
	Time            time.Time     `json:"time"`
	IntervalSeconds float64       `json:"interval_seconds"`
	ScanAgeSeconds  *float64      `json:"scan_age_seconds,omitempty"`
	Host            string        `json:"host,omitempty"`
	Kernel          string        `json:"kernel,omitempty"`
	Listeners       []Listener    `json:"listeners"`
	Omitted         int           `json:"omitted,omitempty"`
	NetNS           []NetNS       `json:"netns"`
	Notes           []string      `json:"notes,omitempty"`
	Unavailable     []Unavailable `json:"unavailable"`
}

// NetNS is a network namespace: the kernel's counters by their own names, since
// its start and within the interval, and its settings. Beside those are the counters of rules that drop or reject
// ("nft …"), and of the namespace's own clients by the address at which a reset refused them ("refused …").
type NetNS struct {
	ID       uint64            `json:"id"`
	Counters map[string]uint64 `json:"counters,omitempty"`
	Delta    map[string]uint64 `json:"delta,omitempty"`
	Sysctl   map[string]int    `json:"sysctl,omitempty"`
	Sockstat map[string]int    `json:"sockstat,omitempty"`
	// LetInElsewhere are the clients let in at ports whose handshakes are not followed.
	LetInElsewhere *uint64 `json:"let_in_elsewhere,omitempty"`
}

// Unavailable is what could not be read, why, and how it could be.
type Unavailable struct {
	What string `json:"what"`
	Why  string `json:"why"`
	How  string `json:"how,omitempty"`
}

// NewSnapshot is the document of a snapshot, its listeners by address.
func NewSnapshot(s *model.Snapshot) Snapshot {
	out := Snapshot{
		Schema:          SnapshotSchema,
		Time:            s.Time,
		IntervalSeconds: s.Interval.Seconds(),
		ScanAgeSeconds:  seconds(s.ScanAge),
		Host:            s.Host,
		Kernel:          s.Kernel,
		Listeners:       make([]Listener, 0, len(s.Listeners)),
		Omitted:         s.Omitted,
		NetNS:           make([]NetNS, 0, len(s.NetNS)),
		Notes:           s.Notes,
		Unavailable:     make([]Unavailable, 0, len(s.Unavailable)),
	}
	for _, l := range model.ByAddress(s.Listeners) {
		out.Listeners = append(out.Listeners, newListener(l))
	}
	for i := range s.NetNS {
		out.NetNS = append(out.NetNS, newNetNS(&s.NetNS[i]))
	}
	for _, u := range s.Unavailable {
		out.Unavailable = append(out.Unavailable, Unavailable{What: u.What, Why: u.Why, How: u.How})
	}
	return out
}

func newNetNS(n *model.NetNS) NetNS {
	return NetNS{ID: n.ID, Counters: n.Counters, Delta: n.Delta, Sysctl: n.Sysctl, Sockstat: n.Sockstat, LetInElsewhere: n.LetInElsewhere}
}

// seconds is a duration in the document's unit; what is not known stays nil.
func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

// Pod is whose listener it is in Kubernetes.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"`
	UID       string `json:"uid,omitempty"`
}

func newPod(p *model.Pod) *Pod {
	if p == nil {
		return nil
	}
	return &Pod{Namespace: p.Namespace, Name: p.Name, Container: p.Container, UID: p.UID}
}

func (p *Pod) model() *model.Pod {
	if p == nil {
		return nil
	}
	return &model.Pod{Namespace: p.Namespace, Name: p.Name, Container: p.Container, UID: p.UID}
}

// Model is the snapshot that the document is of, to be shown by the same code that shows
// this machine's own. What the document has no field for stays unknown: the histogram
// behind first_response, and what a verdict was judged from.
func (s *Snapshot) Model() *model.Snapshot {
	out := &model.Snapshot{
		Time: s.Time, Interval: period(s.IntervalSeconds), ScanAge: spanned(s.ScanAgeSeconds),
		Host: s.Host, Kernel: s.Kernel, Omitted: s.Omitted, Notes: s.Notes,
	}
	for i := range s.Listeners {
		l := s.Listeners[i].model()
		if c := l.Connections; c != nil && s.Listeners[i].Connections.AgeSeconds != nil {
			c.At = s.Time.Add(-c.Age)
		}
		out.Listeners = append(out.Listeners, l)
	}
	for i := range s.NetNS {
		n := &s.NetNS[i]
		out.NetNS = append(out.NetNS, model.NetNS{ID: n.ID, Counters: n.Counters, Delta: n.Delta, Sysctl: n.Sysctl, Sockstat: n.Sockstat, LetInElsewhere: n.LetInElsewhere})
	}
	for _, u := range s.Unavailable {
		out.Unavailable = append(out.Unavailable, model.Unavailable{What: u.What, Why: u.Why, How: u.How})
	}
	return out
}

// period is a number of seconds, bounded: what another machine sends may be any number.
func period(seconds float64) time.Duration {
	const most = float64(math.MaxInt64 / 4)
	n := seconds * float64(time.Second)
	switch {
	case math.IsNaN(n):
		return 0
	case n > most:
		return time.Duration(most)
	case n < -most:
		return -time.Duration(most)
	}
	return time.Duration(math.Round(n))
}

func spanned(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(period(*seconds))
}
