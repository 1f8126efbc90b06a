package losses

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestLedgerBurst(t *testing.T) {
	type scan struct {
		at      time.Duration // after the start
		packets uint64        // dropped since the one before
	}
	for name, c := range map[string]struct {
		scans []scan
		want  uint64
	}{
		"one scan":                        {[]scan{{0, 5}}, 0},
		"nothing":                         {[]scan{{0, 5}, {time.Second, 0}}, 0},
		"one burst":                       {[]scan{{0, 0}, {time.Second, 166}, {2 * time.Second, 0}}, 166},
		"bursts are not added":            {[]scan{{0, 0}, {time.Second, 100}, {2 * time.Second, 150}, {3 * time.Second, 120}}, 150},
		"scans brought forward are added": {[]scan{{0, 0}, {time.Second, 0}, {1200 * time.Millisecond, 40}, {1500 * time.Millisecond, 70}, {1900 * time.Millisecond, 30}, {2900 * time.Millisecond, 60}}, 140},
		"scans far apart":                 {[]scan{{0, 0}, {8 * time.Second, 900}, {16 * time.Second, 20}}, 900},
		"what was lost before the window": {[]scan{{0, 1000}, {time.Second, 3}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var l ledger
			var past []Checkpoint
			for i, s := range c.scans {
				if s.packets > 0 {
					drop(&l, model.DropKey{Cause: model.CauseSlowAccept, Packet: []model.Packet{model.PacketSYN, model.PacketACK}[i%2]}, s.packets, false)
				}
				l.close(i+7, 7)
				past = append(past, Checkpoint{Number: i + 7, At: time.Unix(1000, 0).Add(s.at)})
			}
			require.Equal(t, c.want, l.burst(past))
		})
	}
}
