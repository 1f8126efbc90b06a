// Package connections says of decoded sockets what they mean: which listener a
// connection belongs to, in which phase it is, what waits in the accept queue,
// and which clients gave up. It is pure: it asks no kernel and knows no clock.
package connections
