package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// SnapshotSchema names the JSON document. It only grows: no field of it ever
// changes its meaning or goes away.
const SnapshotSchema = "tcpdiag.snapshot/v1"

// JSON writes the snapshot as one JSON document of schema SnapshotSchema.
// Durations are in seconds. Nothing is written when the snapshot cannot be
// encoded.
func JSON(w io.Writer, s *model.Snapshot) error { return encode(w, s, "  ") }

// JSONLines writes such documents, one a line and interval.
type JSONLines struct {
	w    io.Writer
	pace pace
}

// NewJSONLines writes to w, each line an interval after the one before.
func NewJSONLines(w io.Writer, interval time.Duration) *JSONLines {
	return &JSONLines{w, pace{interval: interval}}
}

// Look takes what was seen, and writes it when it is time.
func (o *JSONLines) Look(s *model.Snapshot) error {
	if o.pace.steps(s.Time) == 0 {
		return nil
	}
	return encode(o.w, s, "")
}

func encode(w io.Writer, s *model.Snapshot, indent string) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false) // "a -> b" stays legible; this is no HTML page
	if err := enc.Encode(newSnapshotJSON(s)); err != nil {
		return fmt.Errorf("render: json: %w", err)
	}
	if _, err := w.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("render: json: %w", err)
	}
	return nil
}

type snapshotJSON struct {
	Schema          string            `json:"schema"`
	Time            time.Time         `json:"time"`
	IntervalSeconds float64           `json:"interval_seconds"`
	ScanAgeSeconds  *float64          `json:"scan_age_seconds,omitempty"`
	Host            string            `json:"host,omitempty"`
	Kernel          string            `json:"kernel,omitempty"`
	Listeners       []listenerJSON    `json:"listeners"`
	Omitted         int               `json:"omitted,omitempty"`
	NetNS           []netnsJSON       `json:"netns"`
	Notes           []string          `json:"notes,omitempty"`
	Unavailable     []unavailableJSON `json:"unavailable"`
}

type netnsJSON struct {
	ID       uint64            `json:"id"`
	Counters map[string]uint64 `json:"counters,omitempty"`
	Delta    map[string]uint64 `json:"delta,omitempty"`
	Sysctl   map[string]int    `json:"sysctl,omitempty"`
	Sockstat map[string]int    `json:"sockstat,omitempty"`
}

type unavailableJSON struct {
	What string `json:"what"`
	Why  string `json:"why"`
	How  string `json:"how,omitempty"`
}

func newSnapshotJSON(s *model.Snapshot) snapshotJSON {
	out := snapshotJSON{
		Schema:          SnapshotSchema,
		Time:            s.Time,
		IntervalSeconds: s.Interval.Seconds(),
		ScanAgeSeconds:  seconds(s.ScanAge),
		Host:            s.Host,
		Kernel:          s.Kernel,
		Listeners:       make([]listenerJSON, 0, len(s.Listeners)),
		Omitted:         s.Omitted,
		NetNS:           make([]netnsJSON, 0, len(s.NetNS)),
		Notes:           s.Notes,
		Unavailable:     make([]unavailableJSON, 0, len(s.Unavailable)),
	}
	for _, l := range byAddress(s.Listeners) {
		out.Listeners = append(out.Listeners, newListenerJSON(l))
	}
	for i := range s.NetNS {
		out.NetNS = append(out.NetNS, newNetNSJSON(&s.NetNS[i]))
	}
	for _, u := range s.Unavailable {
		out.Unavailable = append(out.Unavailable, unavailableJSON(u))
	}
	return out
}

func newNetNSJSON(n *model.NetNS) netnsJSON {
	return netnsJSON{ID: n.ID, Counters: n.Counters, Delta: n.Delta, Sysctl: n.Sysctl, Sockstat: n.Sockstat}
}

// byAddress orders listeners by port, address, device and namespace, so that
// two looks at the same machine can be compared line by line.
func byAddress(in []model.Listener) []*model.Listener {
	out := make([]*model.Listener, len(in))
	for i := range in {
		out[i] = &in[i]
	}
	slices.SortStableFunc(out, compareAddress)
	return out
}

func compareAddress(a, b *model.Listener) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port),
		a.ID.Address.Addr().Compare(b.ID.Address.Addr()),
		cmp.Compare(a.ID.Device, b.ID.Device),
		cmp.Compare(a.ID.NetNS, b.ID.NetNS),
	)
}

// seconds is a duration in the document's unit; what is not known stays nil.
func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
