package term

import (
	"math"
	"strconv"
	"time"
)

// Nbsp keeps a number and its unit on one line; the screen writes it as a blank.
const Nbsp = "\u00a0"

// HowLong is a span of time as people say it, to two digits or so: "12 ms", "4.2 s",
// "2 min 5 s", "3 h 12 min".
func HowLong(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + HowLong(-max(d, -math.MaxInt64)) // the shortest one has no counterpart
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + Nbsp + "µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + Nbsp + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + Nbsp + "s"
	case d <= 2*time.Minute:
		return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10) + Nbsp + "s"
	case d < 2*time.Hour:
		return parts(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	default:
		return parts(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
}

func parts(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	out := strconv.FormatInt(int64(d/big), 10) + Nbsp + bigName
	if rest := d % big / small; rest > 0 {
		out += Nbsp + strconv.FormatInt(int64(rest), 10) + Nbsp + smallName
	}
	return out
}
