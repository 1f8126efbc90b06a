// Package plan foretells what a load would meet at a Tomcat with given limits:
// a simulation of the funnel, of the kernel's retries and of the clients'
// patience. It is pure: it reads no clock, no file and no socket.
package plan
