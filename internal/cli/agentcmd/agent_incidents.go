package agentcmd

import (
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/incident"
)

// incidentOptions are the agent's flags of the recordings.
type incidentOptions struct {
	dir   string
	group string
	files int
	mib   int
	age   time.Duration
}

func (o *incidentOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "incident-dir", "", "directory for recordings of incidents, made if need be; without one the latest four are kept in memory")
	flags.StringVar(&o.group, "incident-group", "", "name or number of a group that may read --incident-dir and its files, such as the archiver's; the agent's user has to be of it")
	flags.IntVar(&o.files, "incident-max-files", 200, "maximum number of recordings in --incident-dir; the oldest are removed")
	flags.IntVar(&o.mib, "incident-max-mib", 256, "maximum size of all recordings in --incident-dir, in MiB; one takes at most 8")
	command.TimeVar(flags, &o.age, "incident-max-age", 30*24*time.Hour, "remove recordings from --incident-dir that are older")
}

func (o *incidentOptions) validate() error {
	switch {
	case o.group != "" && o.dir == "":
		return command.Usagef("--incident-group needs --incident-dir: there is nothing to read in memory")
	case o.files < 1:
		return command.Usagef("--incident-max-files %d: give a number from 1", o.files)
	case o.mib < 8:
		return command.Usagef("--incident-max-mib %d: give a number from 8, the most that one recording takes", o.mib)
	case o.age < time.Minute:
		return command.Usagef("--incident-max-age %v: give a time from 1m", o.age)
	}
	return nil
}

// limits leave room for the recording that is being written.
func (o *incidentOptions) limits() incident.Limits {
	return incident.Limits{Files: o.files, Bytes: int64(o.mib) << 20, Age: o.age}
}

// groupID is the number of --incident-group, nil where none is given. An image
// without /etc/group knows no names.
func (o *incidentOptions) groupID() (*int, error) {
	if o.group == "" {
		return nil, nil
	}
	if n, err := strconv.ParseUint(o.group, 10, 31); err == nil {
		return new(int(n)), nil
	}
	g, err := user.LookupGroup(o.group)
	if err != nil {
		return nil, command.Usagef("--incident-group %q: there is no such group here; give its number", o.group)
	}
	n, err := strconv.Atoi(g.Gid)
	if err != nil {
		return nil, command.Usagef("--incident-group %q: its number %q cannot be read; give it", o.group, g.Gid)
	}
	return &n, nil
}
