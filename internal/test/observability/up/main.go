// Command observability starts the whole of it on this machine, to try out: a
// Tomcat with small limits, tcpdiag's agent, Prometheus and Alertmanager with
// the delivered rules, Grafana with the dashboards where it is installed, and a
// receiver that prints what would page. Enter overloads the Tomcat, Ctrl-C ends
// everything.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var l lab
	l.flags(flag.CommandLine)
	flag.Parse()
	defer l.stop()
	if err := l.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C while it started
		}
		return err
	}
	fmt.Print(l.introduction())
	enter := lines(os.Stdin)
	for {
		select {
		case <-ctx.Done():
			fmt.Println("\nstopping")
			return nil
		case <-enter:
			if err := l.overload(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}
	}
}

// lines reports each line; of nothing more once the input has ended.
func lines(f *os.File) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		for s := bufio.NewScanner(f); s.Scan(); {
			out <- struct{}{}
		}
	}()
	return out
}
