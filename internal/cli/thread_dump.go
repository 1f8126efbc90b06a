package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/threaddump"
)

// registerThreadDump adds the one flag by which something is asked of an observed
// process.
func registerThreadDump(flags *pflag.FlagSet, value *bool, when string) {
	flags.BoolVar(value, "thread-dump", false, "ask each HotSpot JVM of this user and group for a thread dump, "+when+", as jstack does, and show where its threads are (frames only); the JVM stands still while it writes it")
}

// dumped is a snapshot with what its JVMs say.
func dumped(ctx context.Context, s *model.Snapshot) (*model.Snapshot, error) {
	proc, err := hostproc.NewFS(procMount)
	if err != nil {
		return nil, err
	}
	out := threaddump.NewAsker(proc).Snapshot(ctx, s)
	return out, ctx.Err()
}

// dumps adds to the agent's snapshots what the JVMs in trouble say.
func dumps(source func() *model.Snapshot, log *slog.Logger) (*threaddump.Follower, error) {
	proc, err := hostproc.NewFS(procMount)
	if err != nil {
		return nil, err
	}
	return threaddump.NewFollower(threaddump.NewAsker(proc), source, log), nil
}
