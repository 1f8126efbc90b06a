package threads

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// FindAcceptor finds the thread that accepts the connections of a listening
// socket: by its name; where that is cut off, as the thread that is in accept on
// the socket, or the one made right after the connector's poller. Servers other
// than Tomcat are found in accept only. inode is the listening socket's; others
// are the other ports that the process listens on, nil where they are not known.
func FindAcceptor(fs hostproc.FS, pid int, port uint16, inode uint32, others []uint16) (tid int, err error) {
	var all []candidate
	named := map[uint16]bool{}
	err = fs.ThreadNames(pid, func(tid int, comm string) {
		all = append(all, candidate{tid: tid, role: acceptorRole(comm, port)})
		if _, rest, ok := strings.Cut(comm, "-"); ok {
			at, _ := portIn(rest)
			named[at] = true
		}
	})
	if err != nil {
		return 0, err
	}
	all = likely(all)
	var denied error
	for i := range all {
		if err := inspect(fs, pid, inode, &all[i]); err != nil {
			denied = err
		}
	}
	tid, err = chooseAcceptor(all, others != nil && explained(others, named))
	if errors.Is(err, ErrUnclear) && denied != nil {
		err = fmt.Errorf("%w: %w", ErrUnclear, denied)
	}
	return tid, fs.Wrap(pid, "acceptor", err)
}

// likely leaves the threads whose names fit, all where none does.
func likely(all []candidate) []candidate {
	var out []candidate
	for _, c := range all {
		if c.role > roleOther {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// inspect reads when a thread was made and what it does. A thread that ends
// meanwhile is left as it is.
func inspect(fs hostproc.FS, pid int, inode uint32, c *candidate) error {
	task := fs.Path(pid, "task", strconv.Itoa(c.tid))
	stat, err := os.ReadFile(task + "/stat")
	if procfile.Ended(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.started, err = parseStarted(stat); err != nil {
		return err
	}
	line, err := os.ReadFile(task + "/syscall")
	if procfile.Ended(err) {
		return nil
	}
	if err != nil {
		return err
	}
	numbers, known := callsOf(runtime.GOARCH)
	if !known {
		return hostproc.ErrNotSupported
	}
	if c.call, err = parseCall(line, numbers); err != nil {
		return err
	}
	c.ours = c.call.Kind == CallAccept && isSocket(fs, pid, c.call.FD, inode)
	return nil
}

// isSocket reports whether a descriptor is the socket.
func isSocket(fs hostproc.FS, pid, fd int, inode uint32) bool {
	link, err := os.Readlink(fs.Path(pid, "fd", strconv.Itoa(fd)))
	if err != nil {
		return false
	}
	found, ok := hostproc.SocketInode([]byte(link))
	return ok && found == inode
}
