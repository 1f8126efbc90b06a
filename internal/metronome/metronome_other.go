//go:build !linux

package metronome

import (
	"os"
	"sync"
	"time"
)

// Metronome is a ticker where there is no timerfd.
type Metronome struct {
	ticker *time.Ticker
	once   sync.Once
	done   chan struct{}
}

// New ticks for the first time after one interval, which must be positive.
func New(interval time.Duration) (*Metronome, error) {
	return &Metronome{ticker: time.NewTicker(interval), done: make(chan struct{})}, nil
}

// Set changes the interval, at once, from any goroutine.
func (m *Metronome) Set(interval time.Duration) error {
	m.ticker.Reset(interval)
	return nil
}

// Wait returns at the next tick, and with an error once stopped.
func (m *Metronome) Wait() error {
	select {
	case <-m.ticker.C:
		return nil
	case <-m.done:
		return os.ErrClosed
	}
}

// Stop ends Wait, from any goroutine. It may be called twice.
func (m *Metronome) Stop() {
	m.once.Do(func() {
		m.ticker.Stop()
		close(m.done)
	})
}
