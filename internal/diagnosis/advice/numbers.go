package advice

import (
	"time"
)

// RoundUp gives a number that a person would write into a configuration, never less than
// n: 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120; as it is up to ten.
func RoundUp(n int) int {
	if n <= 10 {
		return n
	}
	for scale := 1; ; scale *= 10 {
		for _, nice := range []int{12, 15, 20, 25, 30, 40, 50, 60, 80, 100} {
			if to := nice * scale; to >= n {
				return to
			}
		}
	}
}

// Spare adds a quarter, so that the setting is not at its limit the next day.
func Spare(n int) int { return RoundUp(n + (n+3)/4) }

// rateTime is how long n take at a rate per second.
func rateTime(n int, perSecond float64) time.Duration {
	return time.Duration(min(float64(n)/perSecond, 1e6) * float64(time.Second))
}
