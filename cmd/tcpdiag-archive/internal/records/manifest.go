package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/story"
)

// MaxObject bounds a recording: the agent writes at most 8 MiB and its last record, a
// reader reads at most 16.
const MaxObject = 16 << 20

// Manifest is what is known of a recording beside its bytes. In the spool it is the
// line before them, in the store the object's metadata.
type Manifest struct {
	ID     string        `json:"id"`
	Key    string        `json:"key"`
	SHA256 string        `json:"sha256"`
	Origin Origin        `json:"place"`
	Port   uint16        `json:"port"`
	Began  time.Time     `json:"began"`
	Status string        `json:"status"`
	Cause  string        `json:"cause,omitempty"`
	Lasted time.Duration `json:"lasted"`
	Turned *uint64       `json:"turned_away,omitempty"`
}

// NewManifest is that of a recording that has ended.
func NewManifest(f *Recording, s *story.Story, data []byte) *Manifest {
	sum := sha256.Sum256(data)
	return &Manifest{
		ID: f.ID, Key: f.Key(), SHA256: hex.EncodeToString(sum[:]), Origin: f.origin, Port: s.Header.Port,
		Began: s.Header.Began, Status: s.Summary.Status.String(), Cause: Printable(string(s.Summary.Cause)), Lasted: s.Summary.Duration(), Turned: s.Summary.TurnedAway,
	}
}

// Metadata has names that every store takes: lower case, no dash.
func (m *Manifest) Metadata() map[string]string {
	out := map[string]string{
		"sha256": m.SHA256, "status": m.Status, "cause": m.Cause, "host": m.Origin.Host,
		"began": m.Began.UTC().Format(time.RFC3339), "lasted": m.Lasted.Round(time.Second).String(),
	}
	if m.Turned != nil {
		out["turned_away"] = strconv.FormatUint(*m.Turned, 10)
	}
	for name, value := range out {
		if value == "" {
			delete(out, name)
		}
	}
	return out
}

// Spooled is a recording as it waits in the spool.
func (m *Manifest) Spooled(data []byte) ([]byte, error) {
	head, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), data...), nil
}

// CutLine divides what Spooled has made.
func CutLine(data []byte) (head, rest []byte, ok bool) { return bytes.Cut(data, []byte("\n")) }
