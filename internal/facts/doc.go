// Package facts are what is known: of each listener, process and namespace the newest
// readings, each with its own time, and which listeners are watched. Readers put them
// here; what they mean is decided elsewhere. It asks nobody and judges nothing.
package facts
