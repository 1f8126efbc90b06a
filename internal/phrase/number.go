package phrase

import (
	"fmt"
	"strconv"
)

// Number writes 8192 as "8,192": at three in the morning nobody counts digits.
// Values that are typed into a configuration are written without it.
func Number[T ~int | ~uint64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	if n > 0 {
		s = strconv.FormatUint(uint64(n), 10)
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Sprintf is fmt.Sprintf with Number for every %d. What is to be copied as it
// is (a port, a process id, a setting) is written with %v.
func Sprintf(format string, args ...any) string {
	out := make([]any, len(args))
	for i, a := range args {
		switch n := a.(type) {
		case int:
			out[i] = grouped{n, Number(n)}
		case uint64:
			out[i] = grouped{n, Number(n)}
		default:
			out[i] = a
		}
	}
	return fmt.Sprintf(format, out...)
}

// grouped prints itself with separators for %d, and as it is for any other verb.
type grouped struct {
	plain any
	text  string
}

// Format implements fmt.Formatter.
func (g grouped) Format(f fmt.State, verb rune) {
	if verb == 'd' {
		_, _ = f.Write([]byte(g.text))
		return
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), g.plain)
}
