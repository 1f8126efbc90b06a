// Command kubernetes writes the static manifests of the node agent, rendered
// from the Helm chart: what `helm template` prints, without Helm.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
)

func main() {
	quiet()
	ctx := context.Background()
	for _, s := range statics() {
		if err := s.write(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// quiet keeps back that Helm tells of each symbolic link that it follows: the
// chart's rules and dashboards are links to the files that everybody uses.
func quiet() { slog.SetLogLoggerLevel(slog.LevelWarn) }
