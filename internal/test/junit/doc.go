// Package junit has two readers of JUnit XML judge what tcpdiag run writes, by their own schemas as they
// are published: Jenkins' xUnit plugin and Maven Surefire.
package junit
