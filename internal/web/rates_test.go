package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Clients are drawn by what became of them: who was turned away stays to be seen beside
// seconds in which many were served.
func TestClientsPerSecond(t *testing.T) {
	h := incident.NewHistory()
	l := listener(8080, model.StatusLosing)
	total := model.ClientTotals{Answers: model.ClientAnswers{Known: true}}
	for i := range 10 {
		total.Begun += 10
		if i%2 == 0 {
			total.Answers.Answered += 8
		} else {
			total.Outcomes[model.ClientGaveUp] += 12
		}
		l.Totals.Clients = new(total)
		s := snapshotOf(l)
		s.Time = now.Add(time.Duration(i) * time.Second)
		h.Observe(s)
	}
	p := plot{h.Before(&l), 5, "15 min"}
	c, known := p.clients(&l)
	require.True(t, known)
	require.Equal(t, "10 offered, 0 served, 12 turned away", c.Now)
	require.Equal(t, []string{"turned away", "served", "offered"}, []string{c.Parts[0].Name, c.Parts[1].Name, c.Parts[2].Name})
	require.Equal(t, []string{"offered", "served", "turned away"}, []string{c.Series[0].Name, c.Series[1].Name, c.Series[2].Name})
	require.Regexp(t, `,10,10$`, c.Series[0].Values)
	require.Regexp(t, `,[1-9][0-9.]*,[1-9][0-9.]*$`, c.Series[2].Values, "also in a column of seconds of which only some turned clients away")
	require.Contains(t, c.Text, "10 offered")

	total.Begun, total.Answers.Checks = total.Begun+15, 12 // of which 3 came for an answer
	l.Totals.Clients = new(total)
	s := snapshotOf(l)
	s.Time = now.Add(10 * time.Second)
	h.Observe(s)
	c, _ = (&plot{h.Before(&l), 5, "15 min"}).clients(&l)
	require.Equal(t, "3 offered, 0 served, 0 turned away", c.Now, "without checks")

	l.Totals.Clients = nil
	_, known = (&plot{[]recording.Point{{At: 1}, {At: 2}}, 5, "15 min"}).clients(&l)
	require.False(t, known, "handshakes were not followed")
}

func TestStairsAreInterrupted(t *testing.T) {
	require.Equal(t, "M0 2.0H1V21.0H2M3 40.0H4", stairs([]float64{10, 5, -1, 0}, 10))
}
