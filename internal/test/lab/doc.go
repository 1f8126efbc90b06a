// Package lab overloads real Tomcats the way published experiments did, each in a
// network namespace of its own, and compares what the clients counted with what tcpdiag
// said about it and what its plan had predicted. TestLab writes docs/results/lab.md.
//
// It needs root (namespaces), a JDK, Maven for the first build, and Python for
// Locust; k6 and Locust are fetched once into the user's cache. The application is
// in sample-server.
package lab
