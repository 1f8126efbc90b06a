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

// Cwd is the path through which files in the process's working directory are
// opened: "/proc/PID/cwd". It is not to be resolved first: the name behind it
// is one of the process's own mount namespace.
func (fs FS) Cwd(pid int) string { return fs.Path(pid, "cwd") }

// Root is the path through which the process's own files are opened:
// "/proc/PID/root". A symlink below it that starts with "/" leads out of it;
// OpenRegular, or os.OpenRoot, does not follow those to the wrong place.
func (fs FS) Root(pid int) string { return fs.Path(pid, "root") }
