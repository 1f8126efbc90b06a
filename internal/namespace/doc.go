// Package namespace follows the listeners of one network namespace: the samples
// of their accept queues, the dump of all of them, the counters of the namespace.
// It maps the kernel's values to the domain's; this is the only place where
// Recv-Q becomes "accept queue". What it asks stands behind one interface.
package namespace
