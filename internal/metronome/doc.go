// Package metronome ticks at a fixed rate for as little as the kernel takes.
package metronome
