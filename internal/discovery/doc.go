// Package discovery finds out from outside what serves a listening port: which
// connector it is, its limits, and where each of them comes from.
//
// Nothing is asked of the application. Package examine reads the command line, the
// environment, the configuration files as the process sees them and the JVM's own
// performance data (package catalina a standalone Tomcat's server.xml, package springboot
// an executable jar and its surroundings); package match puts the connectors and the
// listening sockets together. What the server holds now beats what the files say: the
// kernel's backlog (Send-Q) and, where somebody answers, Actuator.
//
// None of it belongs in a loop that runs every few milliseconds. A Discoverer
// remembers what it found for as long as neither the process nor a file that it
// has read changes.
package discovery
