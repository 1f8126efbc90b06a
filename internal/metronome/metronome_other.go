//go:build !linux

package metronome

import "time"

// Metronome is a ticker where there is no timerfd.
type Metronome struct {
	ticker *time.Ticker
	done   chan struct{}
}

func New(interval time.Duration) (*Metronome, error) {
	return &Metronome{ticker: time.NewTicker(interval), done: make(chan struct{})}, nil
}

func (m *Metronome) Set(interval time.Duration) error {
	m.ticker.Reset(interval)
	return nil
}

func (m *Metronome) Wait() bool {
	select {
	case <-m.ticker.C:
		return true
	case <-m.done:
		return false
	}
}

func (m *Metronome) Stop() { close(m.done) }
