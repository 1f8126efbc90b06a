// Package findings has what a reader should know beside the cause: of the clients, the
// stages, the process and the kernel; each with a runbook (books.go).
package findings
