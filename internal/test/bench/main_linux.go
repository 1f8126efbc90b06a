package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	Sockets  int           // the largest table, both ends of each connection
	Holders  int           // processes with many descriptors
	Files    int           // descriptors of each of them
	Turn     time.Duration // how long one turn of the measurements by CPU time lasts
	Turns    int
	Tomcat   int    // turns of the throughput measurement, 0 for none
	Tap      int    // pairs of turns of what the handshake tap costs, measured instead of all else; 0 for none
	Hurry    bool   // measure only what an agent takes beside 10,000 connections a second
	Before   string // an earlier program, whose agent is measured beside them; "" for none
	Out      string
	Tcpdiag  string // program to measure
	Jar      string // the sample server
	Deadline time.Duration
}

func main() {
	if code, ok := runChild(os.Args[1:]); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, parse())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse() options {
	o := options{}
	flag.IntVar(&o.Sockets, "sockets", 190_000, "sockets of the largest table")
	flag.IntVar(&o.Holders, "processes", 300, "processes among which the listener's owner is looked for")
	flag.IntVar(&o.Files, "descriptors", 1000, "descriptors of each of them")
	flag.DurationVar(&o.Turn, "turn", 5*time.Second, "length of one turn where CPU time is measured")
	flag.IntVar(&o.Turns, "turns", 3, "turns where CPU time is measured")
	flag.IntVar(&o.Tomcat, "tomcat-turns", 60, "turns of two seconds of the measurement of Tomcat's throughput, 0 for none")
	flag.IntVar(&o.Tap, "tap", 0, "pairs of turns of a quarter of a second of what the handshake tap costs, measured instead of all else")
	flag.BoolVar(&o.Hurry, "connections", false, "measure nothing but what agents take beside 10,000 connections a second, without bench-tap.md")
	flag.StringVar(&o.Before, "before", "", "an earlier program whose agent is measured beside those connections, too")
	flag.StringVar(&o.Out, "out", "docs/results", "folder for bench.md and scaling.svg, or for bench-tap.md")
	flag.StringVar(&o.Tcpdiag, "tcpdiag", "", "program to measure (default: built from this checkout)")
	flag.StringVar(&o.Jar, "jar", "", "sample server to load (default: built, or taken from the cache)")
	flag.DurationVar(&o.Deadline, "deadline", 10*time.Minute, "give up after this time")
	flag.Parse()
	return o
}

// run makes what is missing and then starts this program again inside
// namespaces of its own, where process 1's end ends all.
func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	switch {
	case inWorld() && (o.Tap > 0 || o.Hurry):
		return measureTap(ctx, o)
	case inWorld():
		return measureAll(ctx, o)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root: it makes namespaces")
	}
	dir, err := os.MkdirTemp("", "tcpdiag-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, dir, &o); err != nil {
		return err
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return err
	}
	return enterWorld(ctx, o)
}
