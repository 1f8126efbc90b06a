// Package clients adds to snapshots what happened to the clients: it opens a
// handshake.Tap in each network namespace that a snapshot names, gives every
// client to the listener it meant, and puts numbers and a sentence into a copy
// of the snapshot. The observer knows nothing of it.
package clients
