package losses

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Queue is one sample of an accept queue.
type Queue struct {
	At      time.Time
	Length  uint32
	Limit   uint32
	FullFor time.Duration // of the time since the sample before
}

// Full says that the next SYN or final ACK is dropped.
func (q Queue) Full() bool { return model.QueueFull(q.Length, q.Limit) }

// Ratio is 1.0 for a full queue.
func (q Queue) Ratio() float64 { return model.QueueRatio(q.Length, q.Limit) }
