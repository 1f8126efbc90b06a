// Command tcpdiag says why a Tomcat's clients are refused, reset or timed out,
// which limit does it, and what to change.
package main

import (
	"os"

	"github.com/tcpdiag/tcpdiag/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.UntilSignal(), os.Args[1:], os.Stdout, os.Stderr))
}
