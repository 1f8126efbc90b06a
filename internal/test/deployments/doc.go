// Package deployments runs Tomcats the way they are deployed elsewhere, overloads
// them, and holds what tcpdiag says against what the server's own MBeans say: limits
// set in code, other protocols, proxies in front, other servers (TestDeployment, which
// writes docs/results/deployments.md). TestAdvice does what tcpdiag advises and measures what
// comes of it, TestOverloads draws cases from a seed, in TestHealthy nothing is wrong.
// The Java sources are in app (Spring Boot), embedded (without Spring), flux (Netty)
// and truth (the agent that writes the MBeans down).
package deployments
