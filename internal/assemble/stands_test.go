package assemble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// While the queue stays full the reading before a packet names its cause at once;
// one from before it was full says nothing.
func TestReadingBeforeADropStands(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(before time.Duration) time.Time { return now.Add(-before) }
	tests := map[string]struct {
		full, read time.Time
		known      bool
	}{
		"full before the reading":      {at(5 * time.Second), at(time.Second), true},
		"full after the reading":       {at(time.Second / 2), at(time.Second), false},
		"not full":                     {time.Time{}, at(time.Second), false},
		"a reading of long before":     {at(5 * time.Second), at(2 * time.Second), false},
		"the reading is of the moment": {at(time.Second / 2), now, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &witness{
				now: now.Add(10 * time.Millisecond), full: tt.full, t: reading.DefaultThresholds(),
				listener: &model.Listener{
					AcceptQueue: &model.AcceptQueue{Length: 6, Limit: 5},
					Connector:   &model.Connector{MaxConnections: &model.Setting[int]{Value: 20}},
					Connections: &model.Connections{At: tt.read, Accepted: 20, Phases: [model.NumPhases]int{model.InService: 20}},
				},
			}
			c, e, known := w.cause(losses.Drop{Since: now, Until: now})
			require.Equal(t, tt.known, known)
			if known {
				require.Equal(t, model.CauseMaxConnections, c)
				require.Equal(t, model.EvidencePhases, e)
			}
		})
	}
}
