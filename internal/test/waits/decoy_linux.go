package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/crowd"
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
func decoy(b *bench) {
	subscription, poll, slow := b.backend(time.Hour), b.backend(30*time.Second), b.backend(2500*time.Millisecond)
	b.postgres()
	b.app(port, "waiting.subscription="+subscription.address+","+poll.address)
	b.until("the decoys", func() bool { return subscription.waiting.Load() == 1 && poll.waiting.Load() == 1 })
	agent, err := crowd.StartAgent(b.ctx, b.dir+"/tcpdiag", "--port", fmt.Sprint(port))
	b.must(err)
	b.ends = append(b.ends, agent.Stop)
	scenes := []scene{{"/sleep?ms=200", 3}, {"/sleep?ms=2500", clients}, {"/socket?to=" + slow.address, clients}}
	looks, blamed := 0, make([]int, len(scenes))
	for began := time.Now(); time.Since(began) < b.decoyed; {
		for i, s := range scenes {
			asking := b.crowd(s.clients, s.path)
			for second := range min(20, int(b.decoyed.Seconds())/len(scenes)) {
				time.Sleep(time.Second)
				l := b.said(agent)
				b.silent(l, subscription.address)
				b.silent(l, poll.address)
				if second%5 == 4 { // one that has just begun to poll again is possibly asked for a client
					l = b.ask(port)
					b.want(!strings.Contains(l.Verdict.Summary, subscription.address) && !strings.Contains(l.Verdict.Summary, poll.address), "%s", l.Verdict.Summary)
					looks++
				}
				looks++
				if second >= settled && l.Verdict.Cause == "downstream" {
					blamed[i]++
				}
			}
			asking.stop()
			b.until("what was begun is answered", func() bool { return slow.waiting.Load() == 0 })
			b.want(asking.failed.Load() == 0, "requests failed")
		}
	}
	b.want(blamed[0]+blamed[1] == 0, "a backend is blamed in %d looks at a server at rest and %d at one whose threads sleep", blamed[0], blamed[1])
	b.want(blamed[2] > 0, "the slow backend is never blamed")
	b.row.Truth = fmt.Sprintf("%d looks in %s, by an agent and by snapshots, at a server at rest, with a timer and with a slow backend by turns", looks, b.decoyed)
}

// said is what an agent publishes of the port.
func (b *bench) said(a *crowd.Agent) *api.Listener {
	text, err := a.Get(b.ctx, "/api/v1/snapshot")
	b.must(err)
	var s api.Snapshot
	b.must(json.Unmarshal([]byte(text), &s))
	return b.listener(&s, port)
}
