// Package reading says what one snapshot of a listener shows, and what two of them show
// together (Pair): how full each stage is, what is known of its limits, whether the process
// runs. It names no cause and writes no sentence.
package reading

import "time"

// Thresholds are the numbers a verdict depends on, besides those that it shares with
// the causes of drops (model.ConnectionsReached, MostlyIdle, FilesReached).
type Thresholds struct {
	// High is the share of a stage from which it is worth a warning.
	High float64
	// Horizon is how far ahead a forecast warns.
	Horizon time.Duration
	// Noise is how many standard deviations of what comes and goes by itself a
	// number must have risen by to be forecast: at 4 a server that is busy and
	// well is not forecast to fill up in a day of snapshots.
	Noise float64
	// Passing is how long a connection may be in the accept queue of a
	// server that has room before it counts as waiting: an acceptor that wakes
	// up needs a moment.
	Passing time.Duration

	// ThreadsBusy is the share of maxThreads that counts as all busy. Between
	// two requests a thread is busy with neither.
	ThreadsBusy float64
	// ThreadsBacklog is how many requests, as a share of maxThreads, must wait
	// to prove the pool exhausted where busy threads cannot be counted (TLS, or
	// clients that reset while being served).
	ThreadsBacklog float64

	// PauseFraction is the part of the time between two snapshots that safepoints must
	// have taken to be the cause, PauseMin the least of it.
	PauseFraction float64
	// PauseMost is the part that is the cause whatever else is full.
	PauseMost float64
	PauseMin  time.Duration
	// ThrottledFraction is the part of the CPU time that the CPU limit must have
	// withheld, and of its periods in which it must have done so, to be said beside
	// a cause; RunDelay the average number of threads that waited for a CPU.
	ThrottledFraction float64
	RunDelay          float64
	// NotRunningFraction is the part that the CPU limit must have withheld for what a thread has not done to be
	// possibly for want of it.
	NotRunningFraction float64
	// CPUOverrides is how much of it there must be to name the CPU although
	// connections or threads are exhausted as well: the limit withheld half of
	// the CPU time, in half of its periods, or half of the busy threads waiting for a CPU rather than for something
	// that the handler waits for.
	CPUOverrides float64

	// LossFraction is the part of the dropped packets from which a cause that says
	// why the queue was full goes before those that only say that it was.
	LossFraction float64

	// QueueMost and ConnectionsMost are how far an advice goes by itself when
	// packets were dropped, unless there is as much already: they are repeated,
	// and do not say how many clients sent them. These are net.core.somaxconn
	// (Linux 5.4) and maxConnections where nobody set them.
	QueueMost, ConnectionsMost int

	// Hold is how long a better status must last before it is believed, Settle
	// how long another cause.
	Hold, Settle time.Duration
}

// DefaultThresholds are the values in force.
func DefaultThresholds() Thresholds {
	return Thresholds{
		High:               .8,
		Horizon:            5 * time.Minute,
		Noise:              4,
		Passing:            100 * time.Millisecond,
		ThreadsBusy:        .9,
		ThreadsBacklog:     .25,
		PauseFraction:      .2,
		PauseMost:          .4,
		PauseMin:           200 * time.Millisecond,
		ThrottledFraction:  .1,
		RunDelay:           .5,
		NotRunningFraction: .25,
		CPUOverrides:       .5,
		LossFraction:       .2,
		QueueMost:          4096,
		ConnectionsMost:    8192,
		Hold:               5 * time.Second,
		Settle:             3 * time.Second,
	}
}
