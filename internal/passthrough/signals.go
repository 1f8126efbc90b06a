//go:build !windows

package passthrough

import (
	"os"
	"syscall"
)

// passedOn are the signals that the command gets as well.
func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT}
}
