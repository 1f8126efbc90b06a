// Package assistants holds `tcpdiag mcp` against clients that others have written: the
// Python library of the Model Context Protocol and its inspector. `make prove
// PROOF=assistants` fetches both and runs it; the Go library's client is in the tests of internal/assistant
// and internal/cli.
package assistants
