package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// More room is not advised where what fills it are requests of clients that have left.
func TestNoRoomForTheDead(t *testing.T) {
	// queued is a full accept queue of which the clients of most have left, the most patient after that time.
	queued := func(oldest, patience time.Duration) func(*model.Listener) {
		return func(l *model.Listener) {
			l.AcceptQueue.Left, l.AcceptQueue.Patience, l.AcceptQueue.OldestWait = 18, patience, &oldest
		}
	}
	slots := func(alive, left int) look {
		return tomcat(200, 20, 20).pool(40).inService(alive).with(model.ClientClosed, left).queue(21, time.Second).do(inServiceFor(3 * time.Second))
	}
	threads := func() look { return tomcat(5, 20, 20).pool(5).inService(5).waiting(15).queue(21, time.Second) }
	for name, c := range map[string]struct {
		of   func() look
		room bool
	}{
		"requests that take longer than clients wait, as all slots are turned over": {func() look { return slots(8, 12).do(queued(10*time.Second, 3*time.Second)) }, false},
		"requests that take less":                                                                      {func() look { return slots(8, 12).do(queued(3*time.Second, 3100*time.Millisecond)) }, true},
		"clients that end their side behind a request":                                                 {func() look { return slots(20, 0).do(queued(10*time.Second, 0)) }, true},
		"slots of clients that are there, and how long a request takes is not known":                   {func() look { return slots(20, 0).do(queued(4*time.Second, 0)) }, true},
		"slots of clients that have left, and how long a request takes is not known":                   {func() look { return slots(8, 12).do(queued(4*time.Second, 0)) }, false},
		"no thread is free, those inside are there yet, and those in the accept queue are mostly gone": {func() look { return threads().do(queued(4*time.Second, 3*time.Second)) }, false},
		"no thread is free, and all wait":                                                              {threads, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := c.of().lost(model.CauseMaxConnections, model.PacketSYN, 30)
			v := Judge(symptoms.Input{Now: now.Listener, Before: c.of().Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, model.CauseMaxConnections, v.Cause)
			steps := ""
			for _, s := range v.Answer.Do {
				steps += s.Text + " " + s.Setting + "\n"
			}
			require.Equal(t, c.room, strings.Contains(steps, "max-connections"), steps)
			if !c.room {
				require.Contains(t, v.Answer.Not, "max-connections")
				require.NotContains(t, v.Findings[0].Advice, "aise server.tomcat.max-connections")
			}
		})
	}
}
