// Package fleet asks a Prometheus (or Mimir, or Thanos, which have the same API) for the
// listeners of all agents: `tcpdiag fleet`. It is read from Client.Table (table.go), which
// asks the questions of questions.go.
//
// It is a client that a person runs. No other package but the command line may import it:
// the agent makes no outbound connection.
package fleet
