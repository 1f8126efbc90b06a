package sockdiag

import (
	"errors"
	"syscall"
)

// Wanted is what one walk looks for: all that is wanted of a table at a moment,
// since a walk costs the host's sockets whether or not one matches.
type Wanted struct {
	Ports  *Ports // local ports
	States States // of which Connected are all that make sense
	// Info asks for tcp_info. The mask is one for the whole request: it takes a
	// seventh of a microsecond a socket, so that a second walk of its own for
	// those that need it pays only where they are few among many.
	Info bool
	// Cgroup selects the sockets of a cgroup (v2, by the inode of its folder) and
	// of those below it, in the kernel; 0 is all. SYN_RECV and TIME_WAIT have
	// none. Linux 5.9; ErrNotSupported before.
	Cgroup uint64
}

// Walk calls fn for every socket that is wanted: one walk of the whole connection
// table, both families, filtered in the kernel. The Socket is reused: copy what
// is to be kept. Errors are those of Listeners; ErrNoPorts for no ports.
func (c *Conn) Walk(w Wanted, fn func(*Socket) error) error {
	c.filter.set(w.Ports)
	if len(c.filter.ranges) == 0 {
		return &Error{Op: "scan", Err: ErrNoPorts}
	}
	c.out = appendScan(c.out[:0], &w, &c.filter)
	err := c.walk("scan", func(body []byte) error {
		if err := c.socket.decode(body); err != nil {
			return wrap("scan", err)
		}
		if !c.filter.has(c.socket.Local.Port()) {
			return nil
		}
		return fn(&c.socket)
	})
	if w.Cgroup != 0 && errors.Is(err, syscall.EINVAL) { // inet_diag_bc_audit does not know the condition
		return &Error{Op: "scan", Errno: syscall.EINVAL, Err: ErrNotSupported}
	}
	return err
}

// Sockets is Walk with tcp_info for a list of ports.
func (c *Conn) Sockets(ports []uint16, states States, fn func(*Socket) error) error {
	*c.ports = Ports{}
	for _, port := range ports {
		c.ports.Add(port)
	}
	return c.Walk(Wanted{Ports: c.ports, States: states, Info: true}, fn)
}

func appendScan(b []byte, w *Wanted, f *portFilter) []byte {
	var ext uint8
	if w.Info {
		ext = extension(diagInfo)
	}
	single := f.single()
	b = appendDump(b, uint32(w.States), ext, single)
	if single == 0 || w.Cgroup != 0 {
		b = appendFilter(b, f.ranges, w.Cgroup)
	}
	return b
}
