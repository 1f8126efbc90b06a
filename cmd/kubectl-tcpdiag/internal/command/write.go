package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/fleetreport"
)

func listeners(results []result) (n int) {
	for i := range results {
		if results[i].err == nil {
			n += len(results[i].snapshot.Listeners)
		}
	}
	return n
}

// writeJSON is one document with the listeners of all.
func writeJSON(w io.Writer, results []result) error {
	return render.Document(w, merged(results), "  ")
}

// writeLine is the same on one line.
func writeLine(w io.Writer, results []result) error { return render.Document(w, merged(results), "") }

// merged is one snapshot of all; of several, the newest time.
func merged(results []result) *api.Snapshot {
	all := &api.Snapshot{Schema: api.SnapshotSchema, Listeners: []api.Listener{}, NetNS: []api.NetNS{}, Unavailable: []api.Unavailable{}}
	for i := range results {
		s := results[i].snapshot
		if s == nil || results[i].err != nil {
			continue
		}
		if all.Host == "" {
			all.Host, all.Kernel = s.Host, s.Kernel
		} else if all.Host != s.Host {
			all.Host, all.Kernel = "", ""
		}
		if s.Time.After(all.Time) {
			all.Time = s.Time
		}
		all.IntervalSeconds = max(all.IntervalSeconds, s.IntervalSeconds)
		all.Listeners = append(all.Listeners, s.Listeners...)
		all.NetNS = append(all.NetNS, s.NetNS...)
		all.Notes = append(all.Notes, s.Notes...)
		all.Unavailable = append(all.Unavailable, s.Unavailable...)
	}
	return all
}

// writeEach is each pod's answer, one after the other.
func writeEach(w io.Writer, results []result, screen render.TextOptions) error {
	for i := range results {
		r := &results[i]
		if r.err != nil {
			continue
		}
		screen.Remote = "kubectl tcpdiag " + r.pod.Name + " -n " + r.pod.Namespace
		if err := render.Text(w, r.snapshot.Model(), screen); err != nil {
			return err
		}
	}
	return nil
}

// row is a listener with whose it is.
type row struct {
	of  *result
	one *api.Listener
}

// byHarm are all listeners, those that lose most first.
func byHarm(results []result) (rows []row) {
	for i := range results {
		if r := &results[i]; r.err == nil {
			for j := range r.snapshot.Listeners {
				rows = append(rows, row{r, &r.snapshot.Listeners[j]})
			}
		}
	}
	lost := func(l *api.Listener) uint64 {
		if l.Losses == nil {
			return 0
		}
		return l.Losses.DroppedPackets
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(api.StatusNamed(b.one.Verdict.Status), api.StatusNamed(a.one.Verdict.Status)), cmp.Compare(lost(b.one), lost(a.one)))
	})
	return rows
}

// writeTable is a line for each listener, the worst first, and the answer of the worst.
func writeTable(w io.Writer, results []result, screen render.TextOptions) error {
	rows := byHarm(results)
	if err := fleetreport.Text(w, fleetOf(rows, len(results)), screen); err != nil {
		return err
	}
	if len(rows) == 0 || api.StatusNamed(rows[0].one.Verdict.Status) == model.StatusOK {
		return nil
	}
	worst := *rows[0].of.snapshot
	worst.Listeners = []api.Listener{*rows[0].one}
	fmt.Fprintln(w)
	only := *rows[0].of
	only.snapshot = &worst
	return writeEach(w, []result{only}, screen)
}

// fleetOf is the table that tcpdiag fleet prints.
func fleetOf(rows []row, pods int) *api.Fleet {
	f := &api.Fleet{Schema: api.FleetSchema, FromRules: true, Counts: map[string]int{}, Agents: pods, Time: time.Time{}}
	for _, r := range rows {
		if t := r.of.snapshot.Time; t.After(f.Time) {
			f.Time = t
		}
		f.Counts[api.StatusNamed(r.one.Verdict.Status).String()]++
		f.Listeners = append(f.Listeners, fleetListener(r))
	}
	return f
}

func fleetListener(r row) api.FleetListener {
	l := r.one
	out := api.FleetListener{
		Namespace: r.of.pod.Namespace, Pod: r.of.pod.Name, PodUID: string(r.of.pod.UID), Node: r.of.pod.Spec.NodeName,
		Address: l.Address, Port: l.Port, Status: api.StatusNamed(l.Verdict.Status).String(), Cause: l.Verdict.Cause,
	}
	if n := len(l.Verdict.Chain); n > 0 {
		out.Cause = l.Verdict.Chain[n-1]
	}
	if l.Clients != nil {
		out.ClientsTurnedAway = l.Clients.TurnedAway
	}
	for i := range l.Limits {
		stage := &api.FleetStage{Used: &l.Limits[i].Used, Max: &l.Limits[i].Max}
		switch l.Limits[i].Name {
		case "accept_queue":
			out.AcceptQueue = stage
		case "max_connections":
			out.Connections = stage
		case "max_threads":
			out.Threads = stage
		}
	}
	return out
}
