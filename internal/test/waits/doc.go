// Package waits holds what tcpdiag says of a Tomcat's threads against the log of
// what they wait for: PostgreSQL behind HikariCP and Spring Data, Redis, an HTTP
// service that is a Tomcat itself, and backends of its own with a delay. TestWaits
// writes docs/results/waits.md.
package waits
