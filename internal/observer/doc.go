// Package observer looks at the listeners of one or more network namespaces in
// two loops. The fast one (Sample) asks the kernel for each watched listener's
// accept queue and drop counter; the slow one (Scan) finds listeners and their
// owners, walks the socket table, reads /proc and judges. Both map the kernel's
// values to the domain's; this is the only place where Recv-Q becomes "accept
// queue". What they found is published as an immutable model.Snapshot, so a
// reader never waits for either.
package observer
