// Package observability runs a real Prometheus and a real Alertmanager with the
// rules that are delivered, and receives what they send. The tests hold rules
// and dashboards against them; `make observability` starts the same for people.
package observability
