package assemble

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// listeners makes the listeners of what was sampled and read.
func (d *draft) listeners() {
	readings := make(map[model.ListenerID]*facts.Sampled)
	for i := range d.f.Namespaces {
		list := d.f.Namespaces[i].Sampled
		for j := range list {
			readings[list[j].ID] = &list[j]
		}
	}
	for i := range d.f.Watchlist.Watched {
		k := &d.f.Watchlist.Watched[i]
		l := d.listener(k, readings[k.ID])
		d.Listeners = append(d.Listeners, l)
	}
}

// listener is one of them, without what is counted.
func (d *draft) listener(k *facts.Watched, r *facts.Sampled) model.Listener {
	worst := k.Worst()
	l := model.Listener{
		ID: k.ID, Port: k.Port(), Inode: worst.Inode, Members: len(k.Members),
		User:     new(worst.UID),
		Expected: k.Expected, Connector: k.Connector, Pod: k.Pod,
		AcceptQueue: &model.AcceptQueue{Length: int(worst.RecvQ), Limit: int(worst.SendQ)},
	}
	if r != nil && !r.Closed && r.Queue.At.After(d.f.Watchlist.At) { // else the list is newer
		l.Inode = r.Inode
		l.AcceptQueue.Length, l.AcceptQueue.Limit = int(r.Queue.Length), int(r.Queue.Limit)
		if r.Known {
			l.AcceptQueue.SocketDrops = &r.Drops
		}
		d.accepted(&l, r)
	} else if worst.HasDrops {
		l.AcceptQueue.SocketDrops = new(drops(k))
	}
	before := &earlier{}
	if r != nil {
		before.full = r.Full
	}
	d.connections(&l, k, before)
	l.AddressMissing = d.addressMissing(&l, k)
	d.process(&l, k, before)
	d.earlier[k.ID] = before
	if c := l.Connector; c != nil && (c.TLS || c.HTTP2) {
		d.miss.Add(unclassified(k.ID, c))
	}
	return l
}

// accepted says what the samples show of who is taken out of a listener's accept queue, and not out of that of the one before it.
func (d *draft) accepted(l *model.Listener, r *facts.Sampled) {
	since := d.next.histories[l.ID].since
	if r.Fell.After(since) {
		l.AcceptQueue.TakenAgo = new(max(0, d.Time.Sub(r.Fell)))
	}
	if still := r.Still; !still.IsZero() {
		if still.Before(since) {
			still = since
		}
		l.AcceptQueue.StandsFor = new(max(0, r.Queue.At.Sub(still)))
	}
}

// addressMissing says that no packet is delivered to a listener's address: but to those of a transparent proxy others' are.
func (d *draft) addressMissing(l *model.Listener, k *facts.Watched) *model.AddressMissing {
	h, n := d.next.histories[l.ID], d.f.Namespace(l.ID.NetNS)
	if n == nil || !slices.Contains(n.Missing, l.ID.Address.Addr()) {
		h.hadClients = h.hadClients || l.AcceptQueue.Length > 0 || l.Connections != nil && l.Connections.Accepted > 0
		return nil
	}
	nonlocal := n.Sysctl["ip_nonlocal_bind"]
	if l.ID.Address.Addr().Is6() {
		nonlocal = n.Sysctl["ipv6_nonlocal_bind"]
	}
	out := &model.AddressMissing{HadClients: h.hadClients, Standby: nonlocal != 0 || n.Sysctl == nil}
	for i := range k.Members {
		m := &k.Members[i]
		if m.Transparent {
			return nil
		}
		out.Standby = out.Standby || m.Freebind || !m.HasOptions
	}
	return out
}

func drops(k *facts.Watched) (sum uint64) {
	for i := range k.Members {
		sum += uint64(k.Members[i].Drops)
	}
	return sum
}

// unclassified: Actuator is Spring Boot's, a standalone Tomcat has JMX alone.
func unclassified(id model.ListenerID, c *model.Connector) model.Unavailable {
	how := "JMX: currentThreadsBusy of Catalina:type=ThreadPool"
	if c.Framework == "spring-boot" {
		how = "Actuator's tomcat.threads.busy (server.tomcat.mbeanregistry.enabled=true)"
	}
	return model.Unavailable{
		What: "idle and in-service connections of " + id.String(),
		Why:  "TLS or HTTP/2: the kernel sees bytes, not requests",
		How:  how,
	}
}

// connections fills in what the latest walk found.
func (d *draft) connections(l *model.Listener, k *facts.Watched, before *earlier) {
	list := d.f.Connections[l.ID]
	last, ok := list.Last()
	since := d.next.histories[l.ID].since
	if !ok || last.At.Before(since) { // of the listener that stood there before
		return
	}
	found := last.Value
	l.Connector = d.next.figures.Current(k.ID, k.Connector, found, last.At)
	l.Connections = found.Behind(l.Connector)
	l.Connections.Age = max(0, d.Time.Sub(last.At))
	if !found.Counts.Partial { // a part of the queues says nothing of the rest
		l.SynBacklog = &model.SynBacklog{Length: found.SynBacklog, Limit: l.AcceptQueue.Limit}
		if found.Queued > 0 && l.AcceptQueue.Length > 0 {
			l.AcceptQueue.OldestWait, l.AcceptQueue.Left, l.AcceptQueue.Patience = new(found.OldestWait), found.QueuedLeft, found.Patience
			if found.Probes > 0 {
				l.AcceptQueue.Probes, l.AcceptQueue.OldestClient = found.Probes, found.OldestAsks
			}
			l.AcceptQueue.NoAcceptFor = d.next.histories[l.ID].queue.read(found, last.At, len(k.Members) > 1)
		}
	}
	if was, ok := list.Before(); ok && !was.At.Before(since) {
		before.connections = was.Value.Behind(l.Connector)
	}
}

// process fills in what was read of the owner.
func (d *draft) process(l *model.Listener, k *facts.Watched, before *earlier) {
	key, ok := k.Process()
	if !ok {
		return
	}
	known := d.f.Processes[key]
	d.miss.Add(known.Unavailable...)
	last, ok := known.Readings.Last()
	if !ok || last.Value == nil {
		return
	}
	p := *last.Value
	if d, ok := d.f.Busiest[l.ID.NetNS][key]; ok {
		p.Busiest = &d
	}
	var backends []model.Backend
	if k.Connector != nil {
		backends = k.Connector.Backends
	}
	p.Downstream = d.downstream(key, backends)
	l.Process = &p
	if was, ok := known.Readings.Before(); ok {
		before.process = was.Value
	}
}

// latest is when the latest of some listeners came.
func (d *draft) latest(listeners []*model.Listener) (at time.Time) {
	for _, l := range listeners {
		if since := d.next.histories[l.ID].since; since.After(at) {
			at = since
		}
	}
	return at
}

// slotsMissing says how many slots are held by connections that clients reset.
func (d *draft) slotsMissing() {
	byProcess := make(map[hostproc.ProcessKey][]*model.Listener)
	for i := range d.Listeners {
		l := &d.Listeners[i]
		if l.Process != nil && connections.SlotsMissing(l) {
			key := hostproc.ProcessKey{PID: l.Process.PID, StartTime: l.Process.StartTime}
			byProcess[key] = append(byProcess[key], l)
		}
	}
	for key, listeners := range byProcess {
		r, ok := d.f.Forgotten[key]
		if !ok || r.At.Before(d.latest(listeners)) || d.Time.Sub(r.At) > 2*r.Rest {
			continue
		}
		d.miss.Add(r.Unavailable...)
		if r.Count == nil {
			continue
		}
		for i, n := range connections.ShareReset(*r.Count, listeners) {
			listeners[i].Connections.Reset = new(n)
		}
	}
}

// downstream is the latest reading of a process's outgoing connections, nil for
// none.
func (d *draft) downstream(key hostproc.ProcessKey, backends []model.Backend) *model.Downstream {
	r, ok := d.f.Downstream[key]
	if !ok {
		return nil
	}
	if errors.Is(r.Err, fs.ErrPermission) {
		d.miss.Add(model.Unavailable{
			What: fmt.Sprintf("outgoing connections of pid %d", key.PID),
			Why:  "permission denied on its descriptors; those of its user are shown",
			How:  "run as the process's user and group, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
		})
	}
	if errors.Is(r.Err, hostproc.ErrManyDescriptors) {
		d.miss.Add(model.Unavailable{
			What: fmt.Sprintf("outgoing connections of pid %d", key.PID),
			Why:  hostproc.ErrManyDescriptors.Error() + "; those of its user are shown",
		})
	}
	if errors.Is(r.WorkersErr, fs.ErrPermission) {
		d.miss.Add(workersUnseen(key.PID))
	}
	if errors.Is(r.WorkersErr, hangs.ErrOthers) {
		d.miss.Add(model.Unavailable{
			What: fmt.Sprintf("which connections the polling worker threads of pid %d wait for", key.PID),
			Why:  hangs.ErrOthers.Error(),
			How:  "end the processes whose memory or files do not answer, or what serves these (FUSE, NFS)",
		})
	}
	out := *r.Value
	out.Age = max(0, d.Time.Sub(out.At))
	out.Peers = slices.Clone(out.Peers)
	downstream.Identify(&out, backends) // which may be known only since
	return &out
}

// workersUnseen says that the threads could not be read.
func workersUnseen(pid int) model.Unavailable {
	return model.Unavailable{
		What: fmt.Sprintf("what each worker thread of pid %d waits for", pid),
		Why:  "permission denied on its threads' system calls",
		How:  "run as the process's user and group (and kernel.yama.ptrace_scope=0), or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
	}
}
