package hostproc

import (
	"os"
	"syscall"
)

// NetID is a number that processes share exactly when they are in one network
// namespace. Unlike the number behind /proc/PID/ns/net, which takes the
// permission to trace the process, any user may ask for it: it is the inode of
// /proc/PID/net/tcp, an entry that each namespace has of its own
// (proc_create_net_data). It has no meaning beyond the comparison.
func (fs FS) NetID(pid int) (uint64, error) {
	st, err := systemStat(fs.Path(pid, "net", "tcp"))
	if err != nil {
		return 0, fs.Wrap(pid, "net", err)
	}
	return st.Ino, nil
}

// systemStat is stat(2) as the system returns it.
func systemStat(path string) (*syscall.Stat_t, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, ErrNotSupported
	}
	return st, nil
}
