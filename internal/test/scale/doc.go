// Command scale builds what a large or a busy host looks like, in namespaces of
// its own on the real kernel, and holds tcpdiag's agent against its budgets there:
// how old the queue and the drops in /metrics are, how long after the first drop
// the status and the right cause are there, and what the agent takes of a core and
// of the memory. It writes RESULTS.md, and needs root for the namespaces.
//
// The servers are stand-ins that stand like a Tomcat at its LimitLatch: they accept
// as many connections as maxConnections allows and then no more, so that the right
// cause of every drop is max_connections. The truth that the agent is held against
// is the kernel's, read at the same time: ListenDrops of the server's namespace, and the
// listener's own queue.
package main
