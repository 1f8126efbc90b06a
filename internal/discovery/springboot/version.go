package springboot

import (
	"strconv"
	"strings"
)

// version is a version number, its leading numbers.
type version [3]int

// parseVersion reads the leading numbers of "3.5.16" or "2.1.0.RELEASE".
func parseVersion(text string) version {
	var v version
	for i, part := range strings.SplitN(text, ".", 4) {
		n, err := strconv.Atoi(leadingDigits(part))
		if i > 2 || err != nil {
			break
		}
		v[i] = n
	}
	return v
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

func (v version) known() bool { return v != version{} }

func (v version) atLeast(numbers ...int) bool {
	for i, n := range numbers {
		if v[i] != n {
			return v[i] > n
		}
	}
	return true
}

// plausible is a version that looks like one, or "": a manifest may hold
// anything.
func plausible(v string) string {
	if len(v) > 40 || leadingDigits(v) == "" || strings.Trim(v, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_+") != "" {
		return ""
	}
	return v
}
