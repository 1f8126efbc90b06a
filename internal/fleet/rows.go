package fleet

import (
	"cmp"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/tcpdiag/tcpdiag/internal/api"
	tcpdiag "github.com/tcpdiag/tcpdiag/internal/model"
)

// key is what makes two series those of one listener. Of a port without a listener the
// listener is "", and the port tells it from others.
type key struct{ cluster, job, instance, netns, listener, port string }

func keyOf(m model.Metric) key {
	k := key{text(m, "cluster"), text(m, "job"), text(m, "instance"), text(m, "netns"), text(m, "listener"), ""}
	if k.listener == "" {
		k.port = text(m, "port")
	}
	return k
}

// text is a label's value as it came: printable is what is shown of it.
func text(m model.Metric, name string) string { return string(m[model.LabelName(name)]) }

func shown(m model.Metric, name string) string { return tcpdiag.Escape(text(m, name)) }

// row is a listener of the table with what orders it.
type row struct {
	key    key
	status tcpdiag.Status
	out    api.FleetListener
}

// newRow is of a series that says who it is; ok is false where the status is none.
func newRow(m model.Metric, status float64) (_ *row, ok bool) {
	if !(status >= 0 && status < float64(tcpdiag.NumStatuses)) {
		return nil, false
	}
	r := &row{key: keyOf(m), status: tcpdiag.Status(status)}
	r.out = api.FleetListener{
		Cluster: shown(m, "cluster"), Job: shown(m, "job"), Instance: shown(m, "instance"), Node: shown(m, "node"),
		Namespace: shown(m, "namespace"), Pod: shown(m, "pod"), Container: shown(m, "container"), Process: process(m),
		NetNS: shown(m, "netns"), Address: shown(m, "listener"), Port: port(m), Status: r.status.String(), Cause: shown(m, "cause"),
	}
	if r.out.Cause == "none" {
		r.out.Cause = ""
	}
	if r.out.Namespace == "" { // the rule has the uid where the name is not known
		r.out.PodUID, r.out.Pod = r.out.Pod, ""
	}
	return r, true
}

// process is the command without the port that its series have.
func process(m model.Metric) string {
	return regexp.MustCompile(`:[0-9]+$`).ReplaceAllString(shown(m, "process"), "")
}

func port(m model.Metric) uint16 {
	written := text(m, "port")
	if written == "" {
		_, written, _ = net.SplitHostPort(text(m, "listener"))
	}
	n, _ := strconv.ParseUint(written, 10, 16)
	return uint16(n)
}

// worstFirst is the order of the table: the status, who turned most clients away, who is fullest.
func worstFirst(a, b *row) int {
	return cmp.Or(
		cmp.Compare(b.status, a.status),
		cmp.Compare(number(b.out.ClientsTurnedAway), number(a.out.ClientsTurnedAway)),
		cmp.Compare(number(b.out.DroppedPackets), number(a.out.DroppedPackets)),
		cmp.Compare(fraction(b.out.FullestRatio), fraction(a.out.FullestRatio)),
		cmp.Compare(a.out.Namespace+"/"+a.out.Pod, b.out.Namespace+"/"+b.out.Pod),
		cmp.Compare(a.out.Instance, b.out.Instance),
		strings.Compare(a.out.Address, b.out.Address),
	)
}

func number(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func fraction(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

// values are an answer by listener.
type values map[key]float64

// valuesOf leaves out what is no number that could be counted.
func valuesOf(v model.Vector) values {
	out := make(values, len(v))
	for _, s := range v {
		if f := float64(s.Value); f >= 0 && !math.IsNaN(f) {
			out[keyOf(s.Metric)] = f
		}
	}
	return out
}

func (v values) count(k key) *uint64 {
	if f, ok := v[k]; ok && f < 1<<53 {
		return new(uint64(math.Round(f)))
	}
	return nil
}

func (v values) int(k key) *int {
	if f, ok := v[k]; ok && f < 1<<31 {
		return new(int(math.Round(f)))
	}
	return nil
}

func (v values) ratio(k key) *float64 {
	if f, ok := v[k]; ok {
		return new(min(f, 1))
	}
	return nil
}

// stage is nil where nothing of it is known.
func stage(used, most *int) *api.FleetStage {
	if used == nil && most == nil {
		return nil
	}
	return &api.FleetStage{Used: used, Max: most}
}

// details are the answers that fill a row.
type details struct {
	turnedAway, refused, dropped, fullest           values
	inside, maxConnections, threadRatio, maxThreads values
	queue, capacity                                 values
	last                                            model.Vector // who listened on ports that nobody listens on
}

func (d *details) fill(r *row) {
	o := &r.out
	if r.key.listener == "" {
		d.before(r)
		o.ClientsTurnedAway = d.refused.count(r.key)
		return
	}
	o.ClientsTurnedAway, o.DroppedPackets = d.turnedAway.count(r.key), d.dropped.count(r.key)
	o.FullestRatio = d.fullest.ratio(r.key)
	queue := d.queue.int(r.key)
	o.AcceptQueue = stage(queue, d.capacity.int(r.key))
	accepted := d.inside.int(r.key)
	if accepted != nil && queue != nil {
		accepted = new(max(*accepted-*queue, 0))
	}
	o.Connections = stage(accepted, d.maxConnections.int(r.key))
	threads := d.maxThreads.int(r.key)
	var busy *int
	if share := d.threadRatio.ratio(r.key); share != nil && threads != nil {
		busy = new(int(math.Round(*share * float64(*threads))))
	}
	o.Threads = stage(busy, threads)
}

// before names who listened on the port within the hour, where that was one alone.
func (d *details) before(r *row) {
	var found []api.FleetListener
	for _, s := range d.last {
		m := s.Metric
		if text(m, "cluster") != r.key.cluster || text(m, "job") != r.key.job || text(m, "instance") != r.key.instance || text(m, "netns") != r.key.netns || text(m, "port") != r.key.port {
			continue
		}
		one := api.FleetListener{Namespace: shown(m, "namespace"), Pod: shown(m, "pod"), Container: shown(m, "container"), Process: process(m)}
		if one.Namespace == "" {
			one.Pod, one.PodUID = "", shown(m, "pod_uid")
		}
		if !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	if len(found) == 1 {
		o, was := &r.out, &found[0]
		o.Namespace, o.Pod, o.PodUID, o.Container, o.Process = was.Namespace, was.Pod, was.PodUID, was.Container, was.Process
	}
}
