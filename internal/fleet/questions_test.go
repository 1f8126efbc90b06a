package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/fleet"
)

func TestParseAt(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	now := time.Date(2026, 5, 4, 9, 30, 0, 0, berlin)
	for text, want := range map[string]time.Time{
		"":                     now,
		"03:12":                time.Date(2026, 5, 4, 3, 12, 0, 0, berlin),
		"09:30":                now,
		"23:05:30":             time.Date(2026, 5, 3, 23, 5, 30, 0, berlin),
		"-2h":                  time.Date(2026, 5, 4, 7, 30, 0, 0, berlin),
		"-90s":                 time.Date(2026, 5, 4, 9, 28, 30, 0, berlin),
		"2026-05-01T03:12:00Z": time.Date(2026, 5, 1, 3, 12, 0, 0, time.UTC),
	} {
		got, err := fleet.ParseAt(text, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	for _, text := range []string{"2h", "25:00", "yesterday", "2026-05-01", "2027-01-01T00:00:00Z", "--2h"} {
		_, err := fleet.ParseAt(text, now)
		require.Error(t, err, text)
	}
}
