// Package fleet holds `tcpdiag fleet`, the recording rules and the Fleet dashboard against
// a real Prometheus that scrapes 5,000 pods of three listeners each: their agents are not
// real, but what they export is made by the real exporter. `make prove PROOF=fleet` writes
// docs/results/fleet.md.
package fleet
