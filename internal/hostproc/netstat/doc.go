// Package netstat reads what a network namespace counts: the counters of its TCP,
// its sockets, and the settings that bound its queues.
//
// Nothing here reads /proc/net: that is the main thread's namespace even in a
// thread that has moved to another. Counters come from /proc/PID/net, sysctls
// from the namespace of the calling thread.
package netstat
