package lab

import (
	"slices"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// healthy is a busy server well below its limits: nothing is to be said of it.
func healthy() []scenario {
	return []scenario{{
		name: "healthy",
		load: "a minute of everything at once: 150 of 200 threads busy, 200 keep-alive clients, slow uploads, bursts of 40, clients that reset or half-close",
		run:  everything,
	}}
}

func everything(b *scene) {
	const minute = 60
	server := b.server(rig.Limits{})
	w := b.agent(server.Port)
	b.Wait(time.Second)
	perSecond := func(rate float64, o demo.BurstOptions) *crowd {
		o.Clients, o.Rate = int(minute*rate), rate
		o.ConnectTimeout, o.RequestTimeout = 5*time.Second, 30*time.Second
		return b.start(o)
	}
	visitors := b.start(demo.BurstOptions{Clients: 200, Rate: 100, Path: hello(5 * time.Millisecond), Requests: -1, Think: time.Second})
	crowds := []*crowd{
		perSecond(100, demo.BurstOptions{Path: hello(20 * time.Millisecond)}),
		perSecond(64, demo.BurstOptions{Path: hello(2 * time.Second)}),
		perSecond(2, demo.BurstOptions{Path: "/upload", Body: 64 << 10, BodyRate: 8 << 10}),
		perSecond(1, demo.BurstOptions{Path: hello(500 * time.Millisecond), HalfClose: true}),
	}
	perSecond(1, demo.BurstOptions{Path: hello(500 * time.Millisecond), ResetAfter: 200 * time.Millisecond})
	for range minute / 10 {
		b.Wait(5 * time.Second)
		crowds = append(crowds, b.start(demo.BurstOptions{Clients: 40, Path: hello(20 * time.Millisecond), ConnectTimeout: 5 * time.Second}))
		b.Wait(5 * time.Second)
	}
	asked, served := 0, 0
	for _, c := range crowds {
		asked += c.o.Clients
		served += c.wait().ok
	}
	visitors.leave()
	b.clients("%d of %d served", served, asked)
	b.Holds(served == asked, "%d of %d served", served, asked)
	b.calm(w)
}

// calm checks every snapshot that the agent had.
func (b *scene) calm(w *watch) {
	looks := w.on(port)
	busiest := slices.MaxFunc(looks, func(a, b rig.Listener) int { return a.Connections.InService - b.Connections.InService })
	b.said("%s looks, at the busiest: %s", strconv.Itoa(len(looks)), words(&busiest))
	b.Holds(busiest.Connections.InService >= 140, "only %d in service", busiest.Connections.InService)
	for _, l := range looks {
		if l.Verdict.Status != "ok" {
			b.Holds(false, "said %s", words(&l))
			return
		}
	}
}
