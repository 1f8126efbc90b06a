package hostproc

import (
	"bytes"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Stat is the part of /proc/PID/stat that a search through all processes needs.
type Stat struct {
	Comm      string // the main thread's name, cut to 15 characters
	StartTime uint64 // in ticks of UserHZ since boot (field 22)
	Threads   int    // field 20
	Exited    bool   // a zombie: it has no descriptors
	Stopped   bool   // SIGSTOP or a debugger halts it
}

// Fields of stat after the name in parentheses, which is field 2.
const (
	statThreads = 20 - 3
	statStart   = 22 - 3
)

// smallFile is more than stat and status of nearly every process have.
const smallFile = 4 << 10

func readStat(path string) (Stat, error) {
	data, err := procfile.Read(path, make([]byte, smallFile))
	if err != nil {
		return Stat{}, err
	}
	return parseStat(data)
}

// parseStat reads past the last parenthesis: a name may contain some.
func parseStat(data []byte) (Stat, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Stat{}, ErrMalformed
	}
	fields := bytes.Fields(data[end+1:])
	if len(fields) <= statStart {
		return Stat{}, ErrMalformed
	}
	threads, ok := procfile.Decimal(fields[statThreads])
	start, err := strconv.ParseUint(string(fields[statStart]), 10, 64)
	if !ok || err != nil {
		return Stat{}, ErrMalformed
	}
	state := fields[0][0]
	return Stat{
		Comm: string(data[open+1 : end]), StartTime: start, Threads: threads,
		Exited: state == 'Z' || state == 'X', Stopped: state == 'T' || state == 't',
	}, nil
}
