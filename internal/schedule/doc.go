// Package schedule says when what is asked of the kernel, by four clocks, each with its own
// price:
//
//   - samples: the accept queue and the drop counter of every watched listener,
//     each sample interval; where that takes too much, those that have been empty
//     for a while take turns;
//   - evidence: the process and the acceptor thread of a listener in trouble, at
//     the first dropped packet and the first full sample, and while it lasts;
//   - snapshots: of the newest facts, every second and at once when a status may
//     change, from memory but for what the taps of the clients have not read yet;
//   - connections: the phases, one namespace at a time, by need.
//
// In addition, the watchlist is made again and again. Nothing waits for anything else, so
// that a walk of a large table, a slow file system or a hostile process delays its own
// facts and no others. What is read goes to facts, what it means is decided in assemble.
//
// Read scheduler.go first, then tasks.go: each task is a loop that a bell wakes early.
package schedule
