// Command tcpdiag says why a Tomcat's clients are refused, reset or timed out,
// which limit does it, and what to change.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
