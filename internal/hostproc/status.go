package hostproc

import (
	"bytes"
	"errors"
	iofs "io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Stat reads one file and parses four of its fields: Process reads two files and
// parses all of them.
func (fs FS) Stat(pid int) (Stat, error) {
	st, err := readStat(fs.Path(pid, "stat"))
	return st, fs.Wrap(pid, "stat", err)
}

// EffectiveUID is the user by which the kernel marks the sockets that a process
// makes. It owns /proc/PID, except that root owns those of processes that are
// not dumpable (started by root and then given away, as jsvc does; or started
// with file capabilities): those need status read.
func (fs FS) EffectiveUID(pid int) (uint32, error) {
	st, err := systemStat(fs.Path(pid))
	if err != nil {
		return 0, fs.Wrap(pid, "status", err)
	}
	if st.Uid != 0 {
		return st.Uid, nil
	}
	line, err := fs.StatusLine(pid, "Uid")
	if err != nil {
		return 0, err
	}
	if ids := bytes.Fields(line); len(ids) > 1 {
		if id, err := strconv.ParseUint(string(ids[1]), 10, 32); err == nil {
			return uint32(id), nil
		}
	}
	return 0, fs.Wrap(pid, "status", ErrMalformed)
}

// StatusLine is what /proc/PID/status says behind "key:".
func (fs FS) StatusLine(pid int, key string) ([]byte, error) {
	data, err := procfile.Read(fs.Path(pid, "status"), make([]byte, smallFile))
	if err != nil {
		return nil, fs.Wrap(pid, "status", err)
	}
	_, rest, ok := bytes.Cut(data, []byte("\n"+key+":"))
	if !ok {
		return nil, fs.Wrap(pid, "status", ErrMalformed)
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return bytes.TrimSpace(line), nil
}

// Children are processes that the main thread of another has started and that have not ended (CONFIG_PROC_CHILDREN), some hundreds at
// most.
func (fs FS) Children(pid int) ([]int, error) {
	data, err := procfile.Read(fs.Path(pid, "task", strconv.Itoa(pid), "children"), make([]byte, smallFile))
	if err != nil {
		return nil, fs.Wrap(pid, "children", err)
	}
	var out []int
	for _, word := range bytes.Fields(data[:bytes.LastIndexByte(data, ' ')+1]) { // the last may be cut off
		if n, ok := procfile.Decimal(word); ok {
			out = append(out, n)
		}
	}
	return out, nil
}

// Hidden says that processes of other users cannot be listed: everybody sees
// pid 1 unless proc is mounted with hidepid.
func (fs FS) Hidden() bool {
	_, err := os.Stat(fs.Path(1))
	return errors.Is(err, iofs.ErrNotExist) && fs.samePIDs && alive(1)
}

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
