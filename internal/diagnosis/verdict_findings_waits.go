package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// possibleWait says what may be the cause, and what is missing to know it.
func (fd finder) possibleWait(add adder) {
	w := &fd.waits
	if w.cause != model.CauseNone || w.possible == model.CauseNone {
		return
	}
	missing := "whether they are so also while nobody is served, as long polls and subscriptions are, has not been seen"
	if d := downstreamOf(fd.Now); d.ByUser {
		missing = "whether they are this process's cannot be seen, only that they are its user's"
	}
	add("possible_"+string(w.possible), model.SeverityInfo,
		fd.join(fd.waitNumbers(), fd.peerNumbers(), missing),
		phrase.Sprintf("Look at %s before raising threads: if they wait for it, more of them only wait, too. The agent learns what is in flight at rest; as root, or as the process's user, tcpdiag sees which threads wait there; --thread-dump asks the JVM.", peerName(w.peer)))
}

// poolBehindVirtualThreads: no limit of Tomcat's is reached by requests that wait for
// a pool in virtual threads, and they wait all the same.
func (fd finder) poolBehindVirtualThreads(add adder) {
	d := downstreamOf(fd.Now)
	if d == nil || d.ByUser || !virtualThreads(fd.Now) {
		return
	}
	for i := range d.Peers {
		w := waits{peer: &d.Peers[i], busy: phase(fd.Now, model.InService), there: d.Peers[i].Waiting()}
		if !w.poolUsedUp() || 2*w.there > w.busy {
			continue
		}
		p := w.peer
		add(string(model.CauseConnectionPool), model.SeverityWarning,
			phrase.Sprintf("%d of %s to %s in flight, the oldest for %s, for %s in service on virtual threads; %s is %d (%s).",
				p.InFlight, phrase.Count(p.Connections, "connection"), peerName(p), phrase.Seconds(p.Oldest), phrase.Count(w.busy, "request"), p.Pool.Setting, p.Pool.Size.Value, p.Pool.Size.Origin()),
			phrase.Sprintf("Raise %s if %s answers more at a time as fast, or shorten what is asked there: the other requests wait for one of its connections.", p.Pool.Setting, peerName(p)))
		return
	}
}
