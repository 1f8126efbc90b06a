// Package records is what is sent of the recordings of incidents: an event of each that begins,
// changes its cause or ends, and the recording with its manifest under its key.
package records

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The kinds of events.
const (
	EventBegin  = "begin"
	eventChange = "change"
	EventEnd    = "end"
)

// Event is what a log record says: an incident that begins, changes its cause or ends.
// It is written to the spool as JSON, and is the same whenever it is made again from the
// same recording.
type Event struct {
	UID      string        `json:"uid"` // of this record, for whoever wants each once
	Kind     string        `json:"kind"`
	Number   int           `json:"number"` // in its incident, from 0
	At       time.Time     `json:"at"`
	Incident string        `json:"incident"`
	Origin   Origin        `json:"place"`
	Address  string        `json:"address"`
	Port     uint16        `json:"port"`
	PID      int           `json:"pid,omitempty"`
	Status   string        `json:"status"`
	Cause    string        `json:"cause,omitempty"`
	Reason   string        `json:"reason,omitempty"` // why it ended
	Turned   *uint64       `json:"turned_away,omitempty"`
	Dropped  uint64        `json:"dropped"` // packets, never clients
	Lasted   time.Duration `json:"lasted"`
	Body     string        `json:"body"`
	Severe   bool          `json:"severe"` // clients are lost, not only at risk
	Object   string        `json:"object,omitempty"`
	Version  string        `json:"version"` // of the program that recorded
}

// uidOf is the same for the same event of the same recording, in whatever run it is made.
func uidOf(h *recording.Header, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", h.Host, h.ID, h.Began.UnixNano(), number))
	return hex.EncodeToString(sum[:16])
}

// MaxBody bounds the text of a record: real ones have some hundred bytes.
const MaxBody = 16 << 10

// bodyOf are the four things that a person reads first, in the order of every surface.
func bodyOf(a *model.Answer) string {
	var b strings.Builder
	part := func(word, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", word, model.Printable(text))
		}
	}
	part("What", a.What)
	part("Why", a.Why)
	for i := range a.Do {
		part(fmt.Sprintf("Do %d", i+1), stepText(&a.Do[i]))
	}
	part("Not", a.Not)
	out := strings.TrimSuffix(b.String(), "\n")
	return strings.ToValidUTF8(out[:min(len(out), MaxBody)], "")
}

func stepText(s *model.Step) string {
	out := strings.TrimSuffix(s.Text, ".")
	if s.Setting != "" && s.To != "" {
		from := ""
		if s.From != "" {
			from = s.From + " → "
		}
		out += fmt.Sprintf(": %s %s%s", s.Setting, from, s.To)
		if s.File != "" {
			out += " in " + s.File
		}
	}
	if s.Command != "" {
		out += ": " + s.Command
	}
	out += "."
	if s.Effect != "" {
		out += " " + s.Effect
	}
	return out
}
