// Package cli is the command line: one file a command, each flags → Options →
// run, and two commands that have packages of their own, agentcmd and runcmd. What they share
// is in package command. Data goes to standard output, logs to standard error, and errors become
// exit codes in one place (command.ExitCode).
package cli
