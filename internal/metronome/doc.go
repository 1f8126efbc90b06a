// Package metronome ticks at a fixed rate with one wake-up of one thread a tick.
package metronome
