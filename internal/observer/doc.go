// Package observer schedules what is asked of the kernel, by four clocks, each
// with its own price:
//
//   - samples: the accept queue and the drop counter of every watched listener,
//     each sample interval; where that takes too much, those that have been empty
//     for a while take turns;
//   - evidence: the process and the acceptor thread of a listener in trouble, at
//     the first dropped packet and the first full sample, and while it lasts;
//   - snapshots: of the newest facts, every second and at once when a status may
//     change, from memory;
//   - connections: the phases, one namespace at a time, by need.
//
// In addition, rosters say which listeners there are and which are watched.
// Nothing waits for anything else, so that a walk of a large table, a slow file
// system or a hostile process delays its own facts and no others. What the
// readings mean is decided elsewhere: namespace, connections, losses, target,
// evidence, diagnosis.
package observer
