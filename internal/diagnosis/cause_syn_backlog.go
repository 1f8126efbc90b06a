package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

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
