package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A one-shot looks on where requests stand in service and nobody has had an answer since it began.
func TestLooksOn(t *testing.T) {
	const followed = time.Second
	for _, tt := range []struct {
		name   string
		change func(*model.Listener, *model.Connections, *model.Clients)
		on     bool
	}{
		{"ten requests of before", func(*model.Listener, *model.Connections, *model.Clients) {}, true},
		{"two, as long polls", func(_ *model.Listener, c *model.Connections, _ *model.Clients) { c.Phases[model.InService] = 2 }, false},
		{"all came since", func(_ *model.Listener, c *model.Connections, _ *model.Clients) { c.InServiceFor = followed / 2 }, false},
		{"of before, by a reading of before", func(_ *model.Listener, c *model.Connections, _ *model.Clients) {
			c.InServiceFor, c.Age = followed/2, followed*3/4
		}, true},
		{"somebody had an answer", func(_ *model.Listener, _ *model.Connections, c *model.Clients) { c.Answers.Answered = 1 }, false},
		{"somebody has come", func(_ *model.Listener, _ *model.Connections, c *model.Clients) { c.Begun = 1 }, false},
		{"somebody was let in, and none had an answer", func(_ *model.Listener, _ *model.Connections, c *model.Clients) {
			c.Begun, c.Outcomes[model.ClientConnected] = 1, 1
		}, true},
		{"whether anybody is answered cannot be seen", func(_ *model.Listener, _ *model.Connections, c *model.Clients) { c.Answers.Known = false }, false},
		{"it is known that something is wrong", func(l *model.Listener, _ *model.Connections, _ *model.Clients) {
			l.Verdict.Status = model.StatusWarning
		}, false},
		{"connections are not known", func(l *model.Listener, _ *model.Connections, _ *model.Clients) { l.Connections = nil }, false},
		{"clients are not followed", func(l *model.Listener, _ *model.Connections, _ *model.Clients) { l.Losses.Clients = nil }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clients := &model.Clients{Observed: followed}
			clients.Answers.Known = true
			l := model.Listener{Connections: &model.Connections{InServiceFor: 3 * followed}, Losses: &model.Losses{Clients: clients}}
			l.Connections.Phases[model.InService] = 10
			tt.change(&l, l.Connections, clients)
			require.Equal(t, tt.on, noneAnswered(&model.Snapshot{Listeners: []model.Listener{l}}))
		})
	}
}
