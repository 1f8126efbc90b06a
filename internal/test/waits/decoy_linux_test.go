package waits

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// settled is after how many seconds of a scene nothing is said of the one before.
const settled = 3

// scene is what the server does beside its decoys.
type scene struct {
	path    string
	clients int
}

// decoy: connections that are in flight whatever the server does are blamed for nothing,
// by an agent that has seen it at rest and by snapshots that have not.
func decoy(s *stage) {
	subscription, poll, slow := s.backend(time.Hour), s.backend(30*time.Second), s.backend(2500*time.Millisecond)
	s.postgres()
	s.app(port, "waiting.subscription="+subscription.Address+","+poll.Address)
	s.Until("the decoys", func() bool { return subscription.Waiting.Load() == 1 && poll.Waiting.Load() == 1 })
	agent, err := rig.StartAgent(s.Ctx, s.Tcpdiag(), "--port", fmt.Sprint(port))
	s.Must(err)
	s.AtEnd(agent.Kill)
	scenes := []scene{{"/sleep?ms=200", 3}, {"/sleep?ms=2500", clients}, {"/socket?to=" + slow.Address, clients}}
	looks, blamed := 0, make([]int, len(scenes))
	for began := time.Now(); time.Since(began) < s.decoyed; {
		for i, one := range scenes {
			asking := s.come(one.clients, one.path)
			for second := range min(20, int(s.decoyed.Seconds())/len(scenes)) {
				time.Sleep(time.Second)
				l := s.said(agent)
				s.silent(l, subscription.Address)
				s.silent(l, poll.Address)
				if second%5 == 4 { // one that has just begun to poll again is possibly asked for a client
					l = s.ask(port)
					s.Holds(!strings.Contains(l.Verdict.Summary, subscription.Address) && !strings.Contains(l.Verdict.Summary, poll.Address), "%s", l.Verdict.Summary)
					looks++
				}
				looks++
				if second >= settled && l.Verdict.Cause == "downstream" {
					blamed[i]++
				}
			}
			asking.Stop()
			s.Until("what was begun is answered", func() bool { return slow.Waiting.Load() == 0 })
			s.Holds(asking.Failed.Load() == 0, "requests failed")
		}
	}
	s.Holds(blamed[0]+blamed[1] == 0, "a backend is blamed in %d looks at a server at rest and %d at one whose threads sleep", blamed[0], blamed[1])
	s.Holds(blamed[2] > 0, "the slow backend is never blamed")
	s.Row.Truth = fmt.Sprintf("%d looks in %s, by an agent and by snapshots, at a server at rest, with a timer and with a slow backend by turns", looks, s.decoyed)
}

// said is what an agent publishes of the port.
func (s *stage) said(a *rig.Agent) *api.Listener {
	text, err := a.Get(s.Ctx, "/api/v1/snapshot")
	s.Must(err)
	var said api.Snapshot
	s.Must(json.Unmarshal(text, &said))
	return s.listener(&said, port)
}
