// Package rig is what proofs on real servers are made of: the servers (Spring Boot,
// a Tomcat of one's own, a standalone one, with what is set), the loads (connections
// that are held, bursts, clients that come at a rate or come back), the faults
// (cgroups, stopped processes, proxies, slow networks), the truth (the server's own
// MBeans, the clients' account, the kernel's counters, the backend's), what tcpdiag
// says of it all, and the table of it.
//
// A case is data where it can be:
//
//	rig.Overload{
//		Name:    "only environment variables",
//		Server:  rig.JVM{Env: []string{"SERVER_TOMCAT_THREADS_MAX=6"}}.Boot("none"),
//		Clients: rig.Clients{N: 30, Text: rig.Get("/hello?ms=60000")},
//		Full:    rig.Full{Busy: 6, Connections: 30},
//		Says:    rig.Says{Verdict: []string{"saturated max_threads"}},
//	}
//
// and a function of a *rig.Case where it is a story. A package of proofs has a TestMain
// that calls Main, which runs its tests in namespaces of their own, with what they need
// built outside of them when it is needed first. A proof runs where -run names it:
//
//	go test -v ./internal/test/deployments -run 'Deployment/paused'
package rig
