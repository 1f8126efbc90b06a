package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// outcomes are the clients of a port by the outcome that the agent reports.
type outcomes map[string]int

func (o outcomes) letIn() int { return o["connected"] + o["delayed"] }

// inside are those that believe, or believed, that they are connected.
func (o outcomes) inside() int { return o.letIn() + o["stalled"] + o["reset"] + o["half_open"] }

func (o outcomes) String() string {
	var parts []string
	for _, name := range []string{"connected", "delayed", "gave_up", "stalled", "refused", "reset", "half_open", "undecided"} {
		if o[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", o[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

func (w *watch) outcomes(port int) outcomes {
	series, err := w.agent.Metrics(w.b.Ctx)
	w.b.Must(err)
	return outcomesIn(series, port)
}

func outcomesIn(series rig.Series, port int) outcomes {
	out := make(outcomes)
	for _, name := range []string{"connected", "delayed", "gave_up", "stalled", "reset", "half_open", "undecided"} {
		out[name] = int(series.Sum("tcpdiag_listener_clients_total", fmt.Sprintf(":%d\"", port), "outcome=\""+name+"\""))
	}
	out["refused"] = int(series.Sum("tcpdiag_port_refused_clients_total", fmt.Sprintf("port=\"%d\"", port)))
	return out
}

// counted holds the agent's clients against the clients' own counts: those that
// met a connect timeout, were refused, and all others were let in. An attempt is
// decided some seconds after its last packet.
func (w *watch) counted(port int, all ...result) { w.countedWith(port, 0, all...) }

// countedWith allows for some that were let in and are none of the load.
func (w *watch) countedWith(port, others int, all ...result) {
	var r result
	for _, one := range all {
		r.connectTimeout += one.connectTimeout
		r.refused += one.refused
		r.ok += one.ok + one.readTimeout + one.reset + one.other
	}
	var o outcomes
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); w.b.Wait(lookEvery) {
		o = w.outcomes(port)
		if o["gave_up"] == r.connectTimeout && o["refused"] == r.refused && o.inside() >= r.ok {
			break
		}
	}
	w.b.said("clients: %s", o)
	w.b.Holds(o["gave_up"] == r.connectTimeout, "clients: %d gave up, %d had a connect timeout", o["gave_up"], r.connectTimeout)
	w.b.Holds(o["refused"] == r.refused, "clients: %d refused, by their own count %d", o["refused"], r.refused)
	w.b.Holds(o.inside() >= r.ok && o.inside() <= r.ok+others, "clients: %d let in, by their own count %d", o.inside(), r.ok)
}
