//go:build !linux

package sampler

import "time"

// metronome is a ticker where there is no timerfd.
type metronome struct {
	ticker *time.Ticker
	done   chan struct{}
}

func newMetronome(interval time.Duration) (*metronome, error) {
	return &metronome{ticker: time.NewTicker(interval), done: make(chan struct{})}, nil
}

func (m *metronome) set(interval time.Duration) error {
	m.ticker.Reset(interval)
	return nil
}

func (m *metronome) wait() bool {
	select {
	case <-m.ticker.C:
		return true
	case <-m.done:
		return false
	}
}

func (m *metronome) stop() { close(m.done) }
