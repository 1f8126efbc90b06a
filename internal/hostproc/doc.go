// Package hostproc reads what /proc shows about processes, network namespaces
// and the machine. prometheus/procfs does the parsing wherever it has a parser;
// this package adds what it lacks (thread names, run delay, socket
// descriptors, cgroup limits, the JVM's hsperfdata) and one set of errors: a
// process that has exited, one that is hidden from us, one we may not read.
//
// Nothing here reads /proc/net: that is the main thread's namespace even in a
// thread that has moved to another. Counters come from /proc/PID/net, sysctls
// from the namespace of the calling thread.
//
// Methods are safe for concurrent use. A nil pointer means that this kernel or
// this user cannot know it, which is never the same as zero.
package hostproc
