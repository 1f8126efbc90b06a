package procfile

import (
	"bytes"
	"math"
	"time"
)

// Decimal parses a non-negative number of at most 18 digits.
func Decimal(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// NextNumber reads one decimal number after any spaces. Numbers that do not
// fit wrap, as the kernel's own counters do.
func NextNumber(b []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	if i == start || i < len(b) && b[i] != ' ' {
		return 0, b, false
	}
	return v, b[i:], true
}

// Nanoseconds drops the highest bit: no counter of a kernel's reaches it.
func Nanoseconds(n uint64) time.Duration { return time.Duration(n << 1 >> 1) }

// Microseconds stops at the longest time.
func Microseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// LineOf is the file from the first line with a prefix on.
func LineOf(file, prefix []byte) []byte {
	for !bytes.HasPrefix(file, prefix) {
		next := bytes.IndexByte(file, '\n')
		if next < 0 {
			return nil
		}
		file = file[next+1:]
	}
	return file
}

// ValueOf is the value of a line "key<white space>value" of a status file.
func ValueOf(data, key []byte) ([]byte, bool) {
	line := LineOf(data, key)
	if line == nil {
		return nil, false
	}
	value := line[len(key):]
	if end := bytes.IndexByte(value, '\n'); end >= 0 {
		value = value[:end]
	}
	return bytes.TrimSpace(value), true
}
