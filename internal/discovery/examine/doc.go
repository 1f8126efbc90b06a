// Package examine finds out what a process is and what its configuration says: a Tomcat of
// its own, a Spring Boot application, another JVM, or something else. What strangers wrote
// is read in a child process (Children, Serve) that has given up everything before; its
// answer crosses back as bounded, checked JSON.
package examine
