package main

import (
	"fmt"
	"strings"
	"time"
)

// huge is the host that nobody could measure here.
const huge = 2_000_000

// share is the sampler's: the largest part of a core that scans may take, less
// than the promised 2 %.
const share = 0.013

// scaling is the tables of cost against size, the plot, and what follows.
func (r *report) scaling() string {
	var b strings.Builder
	b.WriteString("\n## How the cost grows\n\n![cost against sockets, listeners and namespaces](scaling.svg)\n\n")
	b.WriteString("On paper: a **sample** asks for the watched listeners, up to 32 in one send, each a lookup in the kernel's table of listeners, or dumps all LISTEN sockets where that is cheaper (more than 13 watched, and one more for every five that are there): O(listeners), whatever the number of connections. A **scan** walks the table of connections once for each namespace, O(sockets of the whole host) for each, and copies what belongs to the watched ports, O(their connections).\n\n")
	b.WriteString("| sockets | sample of one listener | bare exact request | bare LISTEN dump | bare walk, nothing matches | bare walk, a tenth matches | whole scan |\n|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range r.BySockets {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", count(p.N), brief(p.Sample),
			brief(p.Bare[0]), brief(p.Bare[1]), brief(p.Bare[2]), brief(p.Bare[3]), brief(p.Scan))
	}
	b.WriteString("\n| listeners watched | sample | scan |\n|--:|--:|--:|\n")
	rowsOf(&b, r.ByListeners)
	b.WriteString("\n| namespaces, a listener each | sample | scan |\n|--:|--:|--:|\n")
	rowsOf(&b, r.ByNamespaces)
	if len(r.ByBoth) > 0 && len(r.BySockets) > 0 {
		fmt.Fprintf(&b, "\nand with %s sockets on the host, none of them in these namespaces:\n\n", count(r.BySockets[len(r.BySockets)-1].N))
		b.WriteString("| namespaces, a listener each | sample | scan |\n|--:|--:|--:|\n")
		rowsOf(&b, r.ByBoth)
	}
	if len(r.ByOwnTables) > 0 {
		b.WriteString("\nand there with a hash table for each namespace (net.ipv4.tcp_child_ehash_entries=4096 when they were made):\n\n")
		b.WriteString("| namespaces, a listener each | sample | scan |\n|--:|--:|--:|\n")
		rowsOf(&b, r.ByOwnTables)
	}
	b.WriteString(r.meaning())
	return b.String()
}

func rowsOf(b *strings.Builder, points []point) {
	for _, p := range points {
		fmt.Fprintf(b, "| %s | %s | %s |\n", count(p.N), brief(p.Sample), brief(p.Scan))
	}
}

// meaning extrapolates the last two sizes of the table to a host ten times
// as large. The kernel's hash table has as many buckets as the memory says and
// does not grow, so beyond that a walk is linear.
func (r *report) meaning() string {
	n := len(r.BySockets)
	if n < 2 {
		return ""
	}
	a, z := r.BySockets[n-2], r.BySockets[n-1]
	at := func(of func(point) time.Duration) time.Duration {
		slope := float64(of(z)-of(a)) / float64(z.N-a.N)
		return of(z) + time.Duration(slope*float64(huge-z.N))
	}
	empty := at(func(p point) time.Duration { return p.Bare[2] })
	scan := at(func(p point) time.Duration { return p.Scan })
	interval := func(d time.Duration) string { return brief(time.Duration(float64(d) / share)) }
	return fmt.Sprintf(`
## A host with two million sockets

Drawn on from the last two sizes above: the accept queue is still sampled a hundred times a second for %s each, since neither the exact request nor the LISTEN dump touches the connections. A walk of the table takes about %s even if nothing matches; held to 2 %% of a core that is one scan every %s, and one every %s if a tenth of the sockets (%s) belong to the watched ports. Until the next scan the phases and the oldest wait are that old, and the metric tcpdiag_scan_interval_seconds says so; queue lengths, peaks, seconds full and drops stay exact, because the samples count them.

All network namespaces share the kernel's one table, so an agent that watches N namespaces walks it N times: prefer one agent in each pod (it walks once) or the few namespaces that matter over all of a large host's. Where net.ipv4.tcp_child_ehash_entries was set before a namespace was made (Linux 6.1), it has a table of its own, and only that is walked.
`, brief(z.Sample), brief(empty), interval(empty), interval(scan), count(huge/10))
}
