package command

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/threaddump"
)

// RegisterThreadDump adds the one flag by which something is asked of an observed
// process.
func RegisterThreadDump(flags *pflag.FlagSet, value *bool, when string) {
	flags.BoolVar(value, "thread-dump", false, "ask each HotSpot JVM of this user and group for a thread dump, "+when+", as jstack does, and show where its threads are (frames only); the JVM stands still while it writes it")
}

// DumpOnce asks the JVMs of the latest snapshot, and has another one made with what they say.
func DumpOnce(ctx context.Context, s *schedule.Scheduler) error {
	proc, err := hostproc.NewFS(ProcMount)
	if err != nil {
		return err
	}
	s.PutStacks(threaddump.NewAsker(proc).Snapshot(ctx, s.Snapshot()))
	s.Publish()
	return ctx.Err()
}

// FollowDumps asks the JVMs in trouble, for the agent's snapshots.
func FollowDumps(s *schedule.Scheduler, log *slog.Logger) (*threaddump.Follower, error) {
	proc, err := hostproc.NewFS(ProcMount)
	if err != nil {
		return nil, err
	}
	return threaddump.NewFollower(threaddump.NewAsker(proc), s, log), nil
}
