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
}

// KernelSockets calls fn with the inode of every socket that the tables of
// pid's network namespace know: TCP, UDP, raw, Unix, netlink, packet. A
// descriptor "socket:[N]" whose N is in none of them is a socket the kernel has
// already taken out of its tables, such as a TCP connection that was reset.
// It reads whole tables, so it is for rare use.
func KernelSockets(fs hostproc.FS, pid int, fn func(inode uint32)) error {
	tables := []socketTable{
		{"tcp", 9},
		{"tcp6", 9},
		{"udp", 9},
		{"udp6", 9},
		{"udplite", 9},
		{"udplite6", 9},
		{"raw", 9},
		{"raw6", 9},
		{"icmp", 9},
		{"icmp6", 9},
		{"unix", 6},
		{"netlink", 9},
		{"packet", 8},
	}
	for _, t := range tables {
		if err := readTable(fs, pid, t, fn); err != nil {
			return err
		}
	}
	return nil
}

func readTable(fs hostproc.FS, pid int, t socketTable, fn func(inode uint32)) error {
	f, err := os.Open(fs.Path(pid, "net", t.name))
	if errors.Is(err, iofs.ErrNotExist) && t.name != "tcp" {
		return nil // a protocol this kernel does not have; without tcp it is the process that is missing
	}
	if err != nil {
		return fs.Wrap(pid, "net/"+t.name, err)
	}
	defer f.Close()
	return parseSocketTable(f, t.column, fn)
}

// parseSocketTable reads the inode column of each line after the heading.
// Lines that are too short are passed over.
func parseSocketTable(r io.Reader, column int, fn func(inode uint32)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), 1<<16)
	for heading := true; lines.Scan(); heading = false {
		if heading {
			continue
		}
		word := nthField(lines.Bytes(), column)
		if n, err := strconv.ParseUint(string(word), 10, 32); err == nil {
			fn(uint32(n))
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
