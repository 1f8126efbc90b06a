// Package version compares the versions of Spring Boot, Tomcat and Java by their leading
// numbers.
package version

import (
	"strconv"
	"strings"
)

// Number is a version number, its leading numbers.
type Number [3]int

// Parse reads the leading numbers of "3.5.16" or "2.1.0.RELEASE".
func Parse(text string) Number {
	var v Number
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

// Known reports whether there is a number.
func (v Number) Known() bool { return v != Number{} }

// AtLeast reports whether it is that version or a later one.
func (v Number) AtLeast(numbers ...int) bool {
	for i, n := range numbers {
		if v[i] != n {
			return v[i] > n
		}
	}
	return true
}

// Plausible is a version that looks like one, or "": a manifest may hold
// anything.
func Plausible(v string) string {
	if len(v) > 40 || leadingDigits(v) == "" || strings.Trim(v, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_+") != "" {
		return ""
	}
	return v
}
