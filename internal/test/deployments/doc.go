// Command deployments runs Tomcats the way they are deployed elsewhere, overloads
// them, and holds what tcpdiag says against what the server's own MBeans say: limits
// set in code, other protocols, proxies in front, other servers. It writes the table
// in docs/deployments.md. With -advice it does what tcpdiag advises and measures what
// comes of it, with -overloads it draws them from a seed, with -healthy nothing is
// wrong. The Java sources are in app (Spring Boot), embedded
// (without Spring) and truth (the agent that writes the MBeans down).
package main
