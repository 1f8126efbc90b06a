package fleet

import (
	"errors"
	"time"
)

var errAt = errors.New("give a time of the day (03:12), a time before now (-2h), or one of RFC 3339 (2026-05-04T03:12:00Z)")

// ParseAt is a moment of the past: a time of the day is the last that there was, today's
// or yesterday's.
func ParseAt(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if clock, err := time.Parse(layout, text); err == nil {
			return lastClock(clock, now), nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if span, spanErr := time.ParseDuration(text); err != nil && spanErr == nil && text[0] == '-' {
		at, err = now.Add(span), nil
	}
	switch {
	case err != nil:
		return time.Time{}, errAt
	case at.After(now):
		return time.Time{}, errors.New("this is in the future")
	}
	return at, nil
}

func lastClock(clock, now time.Time) time.Time {
	y, m, d := now.Date()
	at := time.Date(y, m, d, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	if at.After(now) {
		at = time.Date(y, m, d-1, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	return at
}
