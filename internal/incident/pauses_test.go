package incident

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// entries counts the incidents that a tracker opens, and how long each lasts.
type entries struct {
	began []time.Time
	ended []time.Time
}

func (e *entries) begin(_ *open, h *recording.Header) bool {
	e.began = append(e.began, h.Began)
	return true
}
func (e *entries) frame(*open, *recording.Frame) bool { return true }
func (e *entries) tick(*open, *recording.Tick) bool   { return true }
func (e *entries) end(_ *open, end *recording.End) bool {
	e.ended = append(e.ended, end.At)
	return true
}

// An hour of overload with pauses is one entry while it lasts: a pause ends it when nothing has been lost for as long as
// a status looks back, and for the minute that is recorded after it. The clock is the snapshots' own.
func TestAnHourOfOverloadWithPauses(t *testing.T) {
	const (
		overload = 3 * time.Minute
		hour     = time.Hour
		ends     = model.Quiet + recording.Around // 70 s
	)
	for pause, want := range map[time.Duration]int{
		0: 1, 10 * time.Second: 1, 30 * time.Second: 1, ends - time.Second: 1,
		ends + 2*time.Second: 15, 90 * time.Second: 14, 7 * time.Minute: 6,
	} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			var e entries
			tr := &tracker{history: NewHistory()}
			began := time.Unix(1_700_000_000, 0)
			var lost time.Duration // the latest
			for at := time.Duration(0); at < hour+5*time.Minute; at += time.Second {
				if at < hour && at%(overload+pause) < overload {
					lost = at
				}
				l := model.Listener{
					ID:   model.ListenerID{NetNS: 7, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), 8080)},
					Port: 8080, Inode: 99, Members: 1,
				}
				if at-lost < model.Quiet {
					l.Verdict.Status, l.Verdict.Cause = model.StatusLosing, model.CauseMaxConnections
				}
				s := &model.Snapshot{Time: began.Add(at), Listeners: []model.Listener{l}}
				tr.history.Observe(s)
				tr.observe(s, &e)
			}
			require.Len(t, e.began, want)
			require.Len(t, e.ended, want)
			require.Equal(t, began.UTC(), e.began[0])
			if want == 1 {
				require.WithinDuration(t, began.Add(hour+ends), e.ended[0], 2*time.Minute)
			}
		})
	}
}
