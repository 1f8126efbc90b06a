// Package hostproc reads what /proc shows about processes and the machine.
// prometheus/procfs does the parsing wherever it has a parser; this package adds
// what it lacks (socket descriptors, files opened below a process's root) and one
// set of errors: a process that has exited, one that is hidden from us, one we may
// not read.
//
// The packages below it each read one more thing of a process, given an FS: threads,
// cgroup, netstat (its network namespace), openfiles, hsperf (a JVM's counters).
// procfile, which all of them stand on, reads the kernel's small files.
//
// Methods are safe for concurrent use. A nil pointer means that this kernel or
// this user cannot know it, which is never the same as zero.
package hostproc
