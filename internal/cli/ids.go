package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// newIDsCommand is for kubectl tcpdiag, where the API server does not know which user a
// container runs as: whoever is in its pid namespace can read it.
func newIDsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "ids",
		Short:  "Print the uid and gid of the JVM here, else of process 1, as JSON (started by kubectl tcpdiag)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			proc, err := hostproc.NewFS(command.ProcMount)
			if err != nil {
				return err
			}
			ids, err := readIDs(proc)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(ids)
		}),
	}
}

// userIDs are effective ones.
type userIDs struct {
	UID int64 `json:"uid"`
	GID int64 `json:"gid"`
}

func readIDs(proc hostproc.FS) (ids userIDs, err error) {
	pid := jvm(proc)
	if ids.UID, err = effective(proc, pid, "Uid"); err != nil {
		return ids, err
	}
	ids.GID, err = effective(proc, pid, "Gid")
	return ids, err
}

// jvm is the first process called java, 1 where there is none.
func jvm(proc hostproc.FS) int {
	pids, err := proc.PIDs()
	if err != nil {
		return 1
	}
	for _, pid := range pids {
		if stat, err := proc.Stat(pid); err == nil && stat.Comm == "java" {
			return pid
		}
	}
	return 1
}

// effective is the second field of the lines Uid and Gid of /proc/PID/status.
func effective(proc hostproc.FS, pid int, key string) (int64, error) {
	line, err := proc.StatusLine(pid, key)
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/status: no %s", pid, key)
	}
	return strconv.ParseInt(string(fields[1]), 10, 64)
}
