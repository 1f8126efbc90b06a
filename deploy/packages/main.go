// Command packages makes the snapshot that `goreleaser release --snapshot` makes
// of .goreleaser.yaml, to the byte. It is goreleaser's own pipeline without what
// signs, publishes and announces: those bring the software kits of three clouds,
// and four minutes of compiling, which a test run has no use for.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	stdctx "context"

	"github.com/goreleaser/goreleaser/v2/internal/middleware/errhandler"
	"github.com/goreleaser/goreleaser/v2/internal/middleware/logging"
	"github.com/goreleaser/goreleaser/v2/internal/middleware/skip"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/archive"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/before"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/build"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/checksums"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/dist"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/effectiveconfig"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/env"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/git"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/gomod"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/krew"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/metadata"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/nfpm"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/project"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/semver"
	"github.com/goreleaser/goreleaser/v2/internal/pipe/snapshot"
	"github.com/goreleaser/goreleaser/v2/internal/skips"
	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/goreleaser/v2/pkg/context"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run() error {
	parent, stop := signal.NotifyContext(stdctx.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	project, err := config.Load(".goreleaser.yaml")
	if err != nil {
		return fmt.Errorf(".goreleaser.yaml: %w", err)
	}
	ctx, cancel := context.WrapWithTimeout(parent, project, 10*time.Minute)
	defer cancel()
	ctx.Action = context.ActionRelease
	ctx.Parallelism = runtime.GOMAXPROCS(0)
	ctx.Snapshot, ctx.Clean = true, true
	skips.Set(ctx, skips.Publish, skips.Announce, skips.Validate)
	for _, p := range pipeline() {
		if err := skip.Maybe(p, logging.Log(p.String(), errhandler.Handle(p.Run)))(ctx); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// pipe is what goreleaser's pipeline consists of.
type pipe interface {
	fmt.Stringer
	Run(ctx *context.Context) error
}

// pipeline has goreleaser's order (internal/pipeline).
func pipeline() []pipe {
	return []pipe{
		dist.CleanPipe{},
		env.Pipe{},
		git.Pipe{},
		semver.Pipe{},
		defaults{},
		snapshot.Pipe{},
		before.Pipe{},
		dist.Pipe{},
		metadata.Pipe{},
		metadata.MetaPipe{},
		gomod.Pipe{},
		effectiveconfig.Pipe{},
		build.Pipe{},
		archive.Pipe{},
		nfpm.Pipe{},
		checksums.Pipe{},
		krew.Pipe{},
		metadata.ArtifactsPipe{},
	}
}

// defaults fills in what .goreleaser.yaml leaves out.
type defaults struct{}

func (defaults) String() string { return "setting defaults" }

func (defaults) Run(ctx *context.Context) error {
	for _, p := range []interface {
		Default(ctx *context.Context) error
	}{
		dist.Pipe{},
		snapshot.Pipe{},
		project.Pipe{},
		gomod.Pipe{},
		build.Pipe{},
		archive.Pipe{},
		nfpm.Pipe{},
		checksums.Pipe{},
		krew.Pipe{},
	} {
		if err := errhandler.Handle(p.Default)(ctx); err != nil {
			return err
		}
	}
	return nil
}
