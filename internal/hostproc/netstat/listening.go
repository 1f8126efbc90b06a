package netstat

import (
	"bytes"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// Listening calls fn with the port and the inode of each TCP socket that listens in the
// network namespace of a process, which any user may read of any process. The kernel puts
// these before all others (tcp_seq_start), so that no table of connections is read.
func Listening(fs hostproc.FS, pid int, fn func(port uint16, inode uint32)) error {
	for _, t := range []socketTable{{"tcp", 9, true}, {"tcp6", 9, false}} {
		err := t.each(fs, pid, func(inode uint32, line []byte) bool {
			if string(nthField(line, 3)) != listening {
				return false
			}
			_, hex, _ := bytes.Cut(nthField(line, 1), []byte(":"))
			if port, err := strconv.ParseUint(string(hex), 16, 16); err == nil {
				fn(uint16(port), inode)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listening is TCP_LISTEN as the table has it.
const listening = "0A"
