package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// synBacklog: SYNs are dropped before the accept queue. The kernel's counters name it.
func synBacklog() cause {
	return cause{
		name:     model.CauseSynBacklog,
		onlyFull: true,
		full:     (*judge).synQueueFull,
		depth:    10,
		because: func(*judge, model.Verdict) string {
			return " at the SYN queue, before their handshake was complete"
		},
		evidence: func(j *judge, _ model.Verdict) string { return j.join(j.synNumbers()) },
		advice:   func(j *judge, _ model.Verdict) string { return j.adviseSynBacklog() },
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.synBacklogSteps(), "More threads or connections: these clients have not come that far."
		},
		book: Runbook{
			Title:     "SYNs are dropped before the accept queue",
			Seen:      "SYNs were dropped before the accept queue.",
			Check:     "A flood looks like many sources that never finish the handshake: `ss -tan state syn-recv`.",
			Change:    "`sysctl -w net.ipv4.tcp_syncookies=1`; a longer acceptCount also lengthens the SYN queue.",
			Vain:      "Threads and maxConnections.",
			Holds:     "the namespace counted ListenDrops that are no ListenOverflows",
			Otherwise: "what is behind the accept queue",
		},
	}
}

func (j *judge) synBacklogSteps() (do []model.Step) {
	if c := j.losses().Clients; c == nil || c.Flood == nil || !c.Flood.Certain {
		do = append(do, command("Find out whether it is a flood: many sources that never finish the handshake",
			phrase.Sprintf("ss -tan state syn-recv sport = :%v", j.Now.Port)))
	}
	if v, ok := j.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return append(do, model.Step{
			Text: "Switch SYN cookies on: a full SYN queue then loses nobody", Command: "sysctl -w net.ipv4.tcp_syncookies=1",
			Setting: "net.ipv4.tcp_syncookies", From: "0", To: "1",
		})
	}
	return append(do, j.backlogSteps(j.synQueueWanted())...)
}

// synQueueWanted: the SYN queue is as long as the listener's backlog.
func (j *judge) synQueueWanted() int {
	to := 1024
	if q := j.Now.AcceptQueue; q != nil {
		to = max(to, roundUp(2*q.Limit))
	}
	return to
}

func (j *judge) adviseSynBacklog() string {
	s := "Find out whether it is a flood (many sources that never finish the handshake: ss -tan state syn-recv). "
	if c := j.losses().Clients; c != nil && c.Flood != nil && c.Flood.Certain {
		s = ""
	}
	if v, ok := j.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return s + "Switch SYN cookies on: sysctl -w net.ipv4.tcp_syncookies=1; a full SYN queue then loses nobody, at the price of window scaling and SACK for clients without timestamps. maxConnections and threads have no part in it."
	}
	return s + "The SYN queue is as long as the listener's backlog. " + j.backlogChange(j.synQueueWanted()) + " Threads and maxConnections have no part in it."
}
