package springboot

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A text that Spring cannot convert: the application would not have started
// with it. The text itself is not repeated, as it may be anything.
var (
	errNotInteger  = errors.New("not an integer")
	errNotBoolean  = errors.New("not a boolean")
	errNotDuration = errors.New("not a duration")
)

// parseInt converts as StringToNumberConverterFactory does: white space is
// dropped, 0x and # are hexadecimal, the range is Java's int.
func parseInt(text string) (int, error) {
	digits := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	sign := ""
	rest := digits
	if strings.HasPrefix(rest, "-") {
		sign, rest = "-", rest[1:]
	}
	base := 10
	for _, prefix := range []string{"0x", "0X", "#"} {
		if hex, ok := strings.CutPrefix(rest, prefix); ok {
			rest, base = hex, 16
			break
		}
	}
	if base == 10 && sign == "" {
		rest = strings.TrimPrefix(rest, "+")
	}
	if rest == "" || strings.ContainsAny(rest, "+-_") {
		return 0, errNotInteger
	}
	n, err := strconv.ParseInt(sign+rest, base, 32)
	if err != nil {
		return 0, errNotInteger
	}
	return int(n), nil
}

// parseBool converts as StringToBooleanConverter does.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	}
	return false, errNotBoolean
}

// parseDuration converts as DurationStyle does: a number with a unit of at most
// two letters, milliseconds without one, or ISO 8601.
func parseDuration(text string) (time.Duration, error) {
	if m := regexp.MustCompile(`^([+-]?\d+)([a-zA-Z]{0,2})$`).FindStringSubmatch(text); m != nil {
		unit, ok := durationUnit(m[2])
		n, err := strconv.ParseInt(m[1], 10, 64)
		if ok && err == nil {
			return scaled(n, unit), nil
		}
	} else if d, ok := parseISODuration(text); ok {
		return d, nil
	}
	return 0, errNotDuration
}

func durationUnit(suffix string) (time.Duration, bool) {
	switch strings.ToLower(suffix) {
	case "ns":
		return time.Nanosecond, true
	case "us":
		return time.Microsecond, true
	case "", "ms":
		return time.Millisecond, true
	case "s":
		return time.Second, true
	case "m":
		return time.Minute, true
	case "h":
		return time.Hour, true
	case "d":
		return 24 * time.Hour, true
	}
	return 0, false
}

// scaled is n units, held at the ends of what a time.Duration can say: about
// 292 years, beyond any timeout.
func scaled(n int64, unit time.Duration) time.Duration {
	limit := math.MaxInt64 / int64(unit)
	return time.Duration(min(max(n, -limit), limit)) * unit
}

// parseISODuration reads java.time.Duration's form of ISO 8601: PnDTnHnMn.nS.
func parseISODuration(text string) (time.Duration, bool) {
	m := regexp.MustCompile(`(?i)^([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?$`).FindStringSubmatch(text)
	if m == nil || m[2]+m[4]+m[5]+m[6] == "" || strings.EqualFold(m[3], "T") {
		return 0, false
	}
	var sum float64
	for group, unit := range map[int]time.Duration{2: 24 * time.Hour, 4: time.Hour, 5: time.Minute, 6: time.Second} {
		if m[group] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[group], 10, 64)
		if err != nil {
			return 0, false
		}
		sum += float64(n) * float64(unit)
	}
	if m[7] != "" {
		nanos, _ := strconv.Atoi((m[7] + "000000000")[:9])
		if strings.HasPrefix(m[6], "-") {
			nanos = -nanos
		}
		sum += float64(nanos)
	}
	if m[1] == "-" {
		sum = -sum
	}
	return time.Duration(min(max(sum, math.MinInt64+1024), math.MaxInt64-1024)), true
}
