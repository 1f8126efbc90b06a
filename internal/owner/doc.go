// Package owner finds the process that holds a listening socket. The kernel
// does not report it: a socket's inode has to be found among the descriptors of all
// processes, and on a machine with 300 processes of 1000 descriptors each that
// is 300,000 readlinks. So the search asks the likeliest processes first,
// looks at low descriptors before high ones, stops as soon as every socket has
// an owner, and remembers what it found and what it could not find.
//
// Where descriptors may not be read, Tomcat's thread names, which any user may
// read, name the owner of a port. What is read of /proc, hostproc reads; here is
// decided what to ask, in which order, and how long an answer holds.
package owner
