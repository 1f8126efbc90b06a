package netstat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// socketTable is a file of /proc/PID/net and the column its inodes stand in.
type socketTable struct {
	name   string
	column int
	must   bool // it is there where the process is; another is of a protocol that a kernel need not have
}

// KernelSockets calls fn with the inode of every socket that the tables of
// pid's network namespace know: TCP, UDP, raw, Unix, netlink, packet. A
// descriptor "socket:[N]" whose N is in none of them is a socket the kernel has
// already taken out of its tables, such as a TCP connection that was reset.
// It reads whole tables, so it is for rare use.
func KernelSockets(fs hostproc.FS, pid int, fn func(inode uint32)) error {
	tables := []socketTable{
		{"tcp", 9, true},
		{name: "tcp6", column: 9},
		{name: "udp", column: 9},
		{name: "udp6", column: 9},
		{name: "udplite", column: 9},
		{name: "udplite6", column: 9},
		{name: "raw", column: 9},
		{name: "raw6", column: 9},
		{name: "icmp", column: 9},
		{name: "icmp6", column: 9},
		{name: "unix", column: 6},
		{name: "netlink", column: 9},
		{name: "packet", column: 8},
	}
	for _, t := range tables {
		err := t.each(fs, pid, func(inode uint32, _ []byte) bool {
			fn(inode)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls fn with the inode and the line of each socket, until it returns false.
func (t *socketTable) each(fs hostproc.FS, pid int, fn func(inode uint32, line []byte) bool) error {
	f, err := os.Open(fs.Path(pid, "net", t.name))
	if errors.Is(err, iofs.ErrNotExist) && !t.must {
		return nil
	}
	if err != nil {
		return fs.Wrap(pid, "net/"+t.name, err)
	}
	defer f.Close()
	return t.parse(f, fn)
}

// parse passes over the heading, and lines that are too short.
func (t *socketTable) parse(r io.Reader, fn func(inode uint32, line []byte) bool) error {
	lines := bufio.NewScanner(r)
	lines.Scan()
	for lines.Scan() {
		inode, err := strconv.ParseUint(string(nthField(lines.Bytes(), t.column)), 10, 32)
		if err == nil && !fn(uint32(inode), lines.Bytes()) {
			return nil
		}
	}
	return lines.Err()
}

// nthField is bytes.Fields(line)[n] without the slice.
func nthField(line []byte, n int) []byte {
	for ; ; n-- {
		line = bytes.TrimLeft(line, " ")
		end := bytes.IndexByte(line, ' ')
		if end < 0 {
			end = len(line)
		}
		if n == 0 {
			return line[:end]
		}
		line = line[end:]
		if len(line) == 0 {
			return nil
		}
	}
}
