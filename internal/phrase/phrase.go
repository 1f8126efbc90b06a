// Package phrase writes numbers, durations and nouns the way a person reads
// them in a sentence. It is a leaf: whatever speaks to people uses it, so that
// one screen never shows a number in two ways.
package phrase

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Seconds prints a duration as people say it: "0.4 s", "4.2 s", "60 s", "8 min".
func Seconds(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s >= 7200:
		return fmt.Sprintf("%.0f h", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.0f min", s/60)
	case s >= 10:
		return fmt.Sprintf("%.0f s", s)
	case s >= .1:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", s), ".0") + " s"
	}
	return fmt.Sprintf("%.0f ms", s*1000)
}

// Count prints a number with its noun: "1 request", "2 requests".
func Count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return Number(n) + " " + noun + "es"
	}
	return Number(n) + " " + noun + "s"
}

// Plural prints a number with one of two phrases: "1 thread is", "1,700 threads are".
func Plural[N int | uint64](n N, one, many string) string {
	return Number(n) + " " + Verb(n, one, many)
}

// Verb agrees with a number: "1 request waits", "2 requests wait".
func Verb[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Percent prints a ratio, rounded down as the bars beside the sentences are: 0.25
// is "25 %", and 0.999 is not yet "100 %".
func Percent(ratio float64) string { return fmt.Sprintf("%.0f %%", math.Floor(ratio*100+1e-9)) }

// Decimal prints a rate or an average: "0.7", "3.2", "40".
func Decimal(f float64) string {
	if f >= 10 {
		return strconv.FormatFloat(math.Round(f), 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// Fraction prints a number of CPUs as it is set: "0.5", "1.25", "4".
func Fraction(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }

// Capital makes the first letter of a sentence upper case.
func Capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Sentences joins what is not empty.
func Sentences(parts ...string) string {
	said := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, " ")
}

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
