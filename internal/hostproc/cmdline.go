package hostproc

// Cmdline is the process's command line; empty for kernel threads and zombies.
// Any user may read it.
func (fs FS) Cmdline(pid int) ([]string, error) {
	proc, err := fs.proc.Proc(pid)
	if err != nil {
		return nil, fs.Wrap(pid, "cmdline", err)
	}
	args, err := proc.CmdLine()
	return args, fs.Wrap(pid, "cmdline", err)
}

// Environ is the environment the process was started with, as "NAME=value" in
// its order; of two entries with one name the first is what getenv finds. It
// takes the same user and group as the process, or CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH.
func (fs FS) Environ(pid int) ([]string, error) {
	proc, err := fs.proc.Proc(pid)
	if err != nil {
		return nil, fs.Wrap(pid, "environ", err)
	}
	env, err := proc.Environ()
	return env, fs.Wrap(pid, "environ", err)
}
