package model

import "time"

// QueueSamples is how an accept queue went since the publication before, and about a
// second longer: each run holds until the next one begins, the last until To.
type QueueSamples struct {
	From, To time.Time // of the first and of the last sample
	Runs     []QueueRun
}

// QueueRun is a stretch of samples that saw the same.
type QueueRun struct {
	At      time.Duration // since From
	Length  uint32        // connections waiting (sk_ack_backlog), of the fullest socket of a group
	Dropped uint32        // packets dropped when it began; never clients
}
