package owner

import (
	"bytes"
	"strconv"
)

// stat is what /proc/PID/stat tells.
type stat struct {
	comm    string
	start   uint64 // field 22
	threads int    // field 20
	exited  bool   // a zombie: it has no descriptors
}

// Fields of stat after the name in parentheses, which is field 2.
const (
	statThreads = 20 - 3
	statStart   = 22 - 3
)

// parseStat reads past the last parenthesis: a name may hold some.
func parseStat(data []byte) (stat, bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	fields := bytes.Fields(data[end+1:])
	if len(fields) <= statStart {
		return stat{}, false
	}
	threads, err := strconv.Atoi(string(fields[statThreads]))
	if err != nil {
		return stat{}, false
	}
	start, err := strconv.ParseUint(string(fields[statStart]), 10, 64)
	if err != nil {
		return stat{}, false
	}
	return stat{comm: string(data[open+1 : end]), start: start, threads: threads, exited: fields[0][0] == 'Z' || fields[0][0] == 'X'}, true
}

// effectiveUID is the second number of the line "Uid:" of /proc/PID/status.
func effectiveUID(status []byte) (uint32, bool) {
	_, rest, ok := bytes.Cut(status, []byte("\nUid:"))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	ids := bytes.Fields(line)
	if len(ids) < 2 {
		return 0, false
	}
	uid, err := strconv.ParseUint(string(ids[1]), 10, 32)
	return uint32(uid), err == nil
}

// socketInode parses the link of a socket's descriptor, "socket:[12345]"; 0 is
// not a socket.
func socketInode(link []byte) uint32 {
	digits, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0
	}
	digits, ok = bytes.CutSuffix(digits, []byte{']'})
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(string(digits), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}
