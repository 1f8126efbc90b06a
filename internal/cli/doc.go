// Package cli is the command line: one file a command, each flags → Options →
// run. Data goes to standard output, logs to standard error, and errors become
// exit codes in one place.
package cli
