package command

import (
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
)

// The hidden commands, which tcpdiag starts itself as child processes: each gives up everything
// before it reads what a stranger wrote.
const (
	// DiscoverChild reads what one observed process wrote and named; see examine.Serve.
	DiscoverChild = "discover-child"
	// MemoryChild reads the memory of observed processes; see memory.Serve.
	MemoryChild = "memory-child"
)

// self is this very program, also where its file was replaced.
const self = "/proc/self/exe"

// ChildCommands are those commands.
func ChildCommands() []*cobra.Command {
	hidden := func(use, short string, run func(*cobra.Command) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short + " (started by tcpdiag itself)", Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
		}
	}
	return []*cobra.Command{
		hidden(DiscoverChild, "Read one process's configuration", func(cmd *cobra.Command) error {
			proc, err := hostproc.NewFS(ProcMount)
			if err != nil {
				return err
			}
			return examine.Serve(proc, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
		hidden(MemoryChild, "Read the memory of processes", func(*cobra.Command) error { return serveMemory() }),
	}
}

// children examine processes.
func children() *examine.Children { return examine.NewChildren(self, DiscoverChild) }

// openProc opens /proc, with a child process that reads the memory of others.
func openProc() (hostproc.FS, error) {
	proc, err := hostproc.NewFS(ProcMount)
	if err != nil {
		return hostproc.FS{}, err
	}
	return proc.WithMemory(memory.NewReader(func() *exec.Cmd {
		cmd := exec.Command(self, MemoryChild) //nolint:noctx // what waits for a context could wait for ever
		cmd.Args[0] = "tcpdiag"
		cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
		return cmd
	})), nil
}
