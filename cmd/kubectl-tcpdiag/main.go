// Command kubectl-tcpdiag is kubectl tcpdiag: why clients of a Tomcat in a pod are refused,
// reset or timed out.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/command"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	return command.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
