// Package recording is the format of a recording: its records (Header, Frame, Tick, End),
// each a line with its checksum, frames as merge patches on the one before; the reader of
// them, which is bounded, as anybody may have written one; and a frame judged again.
package recording
