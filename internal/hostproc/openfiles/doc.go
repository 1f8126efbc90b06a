// Package openfiles reads how many files a process has open and may have, and which
// of a sample of them are sockets.
package openfiles
