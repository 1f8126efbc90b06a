// Package proctest has what tests of the readers of /proc read: processes in known
// states, folders that look like a proc file system, network namespaces.
package proctest
