// Package e2e drives a real Tomcat with real clients and holds what tcpdiag
// says against what they and the server itself know. The code outside the
// tests builds and starts things; it is shared with the lab.
package e2e
