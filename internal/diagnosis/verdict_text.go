package diagnosis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// seconds prints a duration as people say it: "0.4 s", "4.2 s", "60 s", "8 min".
func seconds(d time.Duration) string {
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

// count prints a number with its noun: "1 request", "2 requests".
func count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// verb agrees with a number: "1 request waits", "2 requests wait".
func verb[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// all says that n of n are taken: "its only thread is", "all 200 threads are".
func all(n int, noun string) string {
	if n == 1 {
		return "the only " + noun + " is"
	}
	return "all " + count(n, noun) + " are"
}

func percent(ratio float64) string { return fmt.Sprintf("%.0f %%", ratio*100) }

// decimal prints a rate or an average: "0.7", "3.2", "40".
func decimal(f float64) string {
	if f >= 10 {
		return strconv.FormatFloat(math.Round(f), 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// fraction prints a number of CPUs as it is set: "0.5", "1.25", "4".
func fraction(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }

// capital makes the first letter of a sentence large.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// sentences joins what is not empty.
func sentences(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

// roundUp gives a number that a person would write into a configuration: two
// significant digits, never less than n.
func roundUp(n int) int {
	step := 1
	for n/step >= 100 {
		step *= 10
	}
	return (n + step - 1) / step * step
}

// spare adds a quarter, so that the setting is not at its limit the next day.
func spare(n int) int { return roundUp(n + (n+3)/4) }

// serverName is what the process is called in a sentence.
func serverName(l *model.Listener) string {
	if isTomcat(l) {
		return "Tomcat"
	}
	if l.Process != nil && l.Process.Comm != "" && l.Process.Comm != "java" {
		return l.Process.Comm
	}
	return "the server"
}

// isTomcat is also true when somebody gave one of Tomcat's limits by hand.
func isTomcat(l *model.Listener) bool {
	c := l.Connector
	if c == nil {
		return false
	}
	return c.Server == "tomcat" || c.Server == "" && (c.MaxConnections != nil || c.MaxThreads != nil || c.AcceptCount != nil)
}

// rateTime is how long n take at a rate per second.
func rateTime(n int, perSecond float64) time.Duration {
	return time.Duration(min(float64(n)/perSecond, 1e6) * float64(time.Second))
}
