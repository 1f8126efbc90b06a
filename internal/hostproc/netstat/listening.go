package netstat

import (
	"bufio"
	"bytes"
	"errors"
	iofs "io/fs"
	"os"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// Listening calls fn with the port and the inode of each TCP socket that listens in the
// network namespace of a process, which any user may read of any process. The kernel puts
// these before all others (tcp_seq_start), so that no table of connections is read.
func Listening(fs hostproc.FS, pid int, fn func(port uint16, inode uint32)) error {
	for _, name := range []string{"tcp", "tcp6"} {
		if err := eachListening(fs, pid, name, fn); err != nil {
			return err
		}
	}
	return nil
}

// listening is TCP_LISTEN as the table has it.
const listening = "0A"

func eachListening(fs hostproc.FS, pid int, name string, fn func(port uint16, inode uint32)) error {
	f, err := os.Open(fs.Path(pid, "net", name))
	if errors.Is(err, iofs.ErrNotExist) && name != "tcp" {
		return nil
	}
	if err != nil {
		return fs.Wrap(pid, "net/"+name, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the heading
	for lines.Scan() {
		line := lines.Bytes()
		if string(nthField(line, 3)) != listening {
			return nil
		}
		_, hex, _ := bytes.Cut(nthField(line, 1), []byte(":"))
		port, err1 := strconv.ParseUint(string(hex), 16, 16)
		inode, err2 := strconv.ParseUint(string(nthField(line, 9)), 10, 32)
		if err1 == nil && err2 == nil {
			fn(uint16(port), uint32(inode))
		}
	}
	return lines.Err()
}
