package main

import (
	"flag"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	Only       string        // scenarios, "H1,H4"
	Sockets    int           // H1's host
	Namespaces int           // H1's servers
	Ends       int           // H2's socket ends
	Calm       time.Duration // how long the calm is measured
	Out        string
	Tcpdiag    string
	Profiles   string // folder for profiles of the agent
	Deadline   time.Duration
}

func parse() options {
	o := options{}
	flag.StringVar(&o.Only, "only", "", "scenarios to run, such as H1,H4 (default: all)")
	flag.IntVar(&o.Sockets, "sockets", 190_000, "sockets of H1's host")
	flag.IntVar(&o.Namespaces, "namespaces", 50, "namespaces with a server each in H1")
	flag.IntVar(&o.Ends, "ends", 1_000_000, "socket ends of H2's namespace")
	flag.DurationVar(&o.Calm, "calm", time.Minute, "how long the calm is measured")
	flag.StringVar(&o.Out, "out", "docs/results", "folder for scale.md")
	flag.StringVar(&o.Tcpdiag, "tcpdiag", "", "program to measure (default: built from this checkout)")
	flag.StringVar(&o.Profiles, "profiles", "", "folder for the agent's profiles of processor and heap in trouble, and its map of memory (default: none)")
	flag.DurationVar(&o.Deadline, "deadline", 9*time.Minute, "give up after this long")
	flag.Parse()
	return o
}

// wanted reports whether a scenario is to be run.
func (o options) wanted(name string) bool {
	return o.Only == "" || slices.Contains(strings.Split(o.Only, ","), name)
}
