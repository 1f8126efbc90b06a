package main

import (
	"fmt"
	"strconv"
	"time"
)

// brief shows three digits: 1.52 µs, 27.1 ms, 1.55 s.
func brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	}
	return digits(d.Seconds()) + " s"
}

func digits(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 2, 64) }

func times2(ratio float64) string { return digits(ratio) + " ×" }

func percent(share float64) string { return digits(100*share) + " %" }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// count groups thousands: 190,000.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func allocated(n float64) string {
	switch {
	case n < 0.01:
		return "0 allocations"
	case n == 1:
		return "1 allocation"
	}
	return digits(n) + " allocations"
}
