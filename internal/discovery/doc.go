// Package discovery finds out from outside what serves a listening port: which
// connector it is, its limits, and where each of them comes from.
//
// Nothing is asked of the application. The command line, the environment, the
// configuration files as the process sees them, the JVM's own performance data
// and the names of its threads are put together here; package catalina reads a
// standalone Tomcat's server.xml, package springboot an executable jar and its
// surroundings. What the server holds now beats what the files say: the
// kernel's backlog (Send-Q) and, where somebody answers, Actuator.
//
// None of it belongs in a loop that runs every few milliseconds. A Discoverer
// remembers what it found for as long as neither the process nor a file that it
// has read changes.
package discovery
