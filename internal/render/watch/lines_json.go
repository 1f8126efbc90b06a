package watch

import (
	"io"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

// JSONLines writes such documents, one a line and interval.
type JSONLines struct {
	w    io.Writer
	pace pace
}

// NewJSONLines writes to w, each line an interval after the one before.
func NewJSONLines(w io.Writer, interval time.Duration) *JSONLines {
	return &JSONLines{w, pace{interval: interval}}
}

// Add takes a snapshot, and writes it when it is time.
func (o *JSONLines) Add(s *model.Snapshot) error {
	if o.pace.steps(s.Time) == 0 {
		return nil
	}
	return render.Document(o.w, api.NewSnapshot(s), "")
}
