// Package crowd fills a network namespace of a test's own with sockets: child
// processes, the test program itself run again, that hold connections,
// descriptors or a processor, since one process may be held to 20,000
// descriptors. It starts the agent that is measured among them.
package crowd
