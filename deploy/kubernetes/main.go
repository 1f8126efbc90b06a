// Command kubernetes writes the chart's schema and its README's table, of values.yaml, the dashboards
// in the form of grafana.com, and the static manifests of the node agent, rendered from the chart: what `helm template` prints, without Helm. With -all it
// prints every manifest instead, kustomizations and the chart with all its
// values files.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
)

func main() {
	all := flag.Bool("all", false, "print every manifest, write nothing")
	flag.Parse()
	quiet()
	if err := run(context.Background(), *all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, all bool) error {
	if all {
		return writeAll(ctx, os.Stdout)
	}
	if err := writeOfValues(); err != nil { // first: the schema is asked by what follows
		return err
	}
	if err := writeOfDashboards(); err != nil {
		return err
	}
	for _, s := range statics() {
		if err := s.write(ctx); err != nil {
			return err
		}
	}
	return nil
}

// quiet suppresses what Helm reports of each symbolic link that it follows: the
// chart's rules and dashboards are links to the files that everybody uses.
func quiet() { slog.SetLogLoggerLevel(slog.LevelWarn) }
