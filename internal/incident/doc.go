// Package incident keeps what was seen of each listener: the last minutes in
// memory, second by second, for charts and for whoever asks what happened.
package incident
