package advice

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// OtherSynSteps are what to look at where SYNs are dropped though the SYN queue does not do it.
func OtherSynSteps() []model.Step {
	return []model.Step{
		Command("See whether the kernel has a route back to the clients (of IPv6: Ip6OutNoRoutes)", "ip route get CLIENT; nstat -az IpOutNoRoutes Ip6OutNoRoutes"),
		Command("See whether it knows the next hop towards them (FAILED and INCOMPLETE are not)", "ip neigh; ip -6 neigh"),
		Command("See whether it lacks memory, or a security module denies connections", "nstat -az TcpExtTCPMemoryPressures; dmesg | tail"),
	}
}

// SynQueueSteps are what helps where SYNs are dropped at a full SYN queue.
func SynQueueSteps(s *symptoms.Symptoms) (do []model.Step) {
	if c := s.Losses().Clients; c == nil || c.Flood == nil || !c.Flood.Certain {
		do = append(do, Command("Find out whether it is a flood: many sources that never finish the handshake",
			phrase.Sprintf("ss -tan state syn-recv sport = :%v", s.Now.Port)))
	}
	if v, ok := s.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return append(do, model.Step{
			Text: "Switch SYN cookies on: a full SYN queue then loses nobody", Command: "sysctl -w net.ipv4.tcp_syncookies=1",
			Setting: "net.ipv4.tcp_syncookies", From: "0", To: "1", Limit: reading.LimitCookies,
		})
	}
	return append(do, BacklogSteps(s, synQueueWanted(s))...)
}

// synQueueWanted: the SYN queue is as long as the listener's backlog.
func synQueueWanted(s *symptoms.Symptoms) int {
	to := 1024
	if q := s.Now.AcceptQueue; q != nil {
		to = max(to, RoundUp(2*q.Limit))
	}
	return to
}

// SynQueue is what helps then, as a text.
func SynQueue(s *symptoms.Symptoms) string {
	if !s.SynQueueMayBe() {
		return "The SYN queue is not what drops these: it answers with cookies when it is full (net.ipv4.tcp_syncookies). See whether the kernel has a route back to the clients (ip route get CLIENT), memory, or a security module that denies them. The lengths of the queues, threads and maxConnections have no part in it."
	}
	text := "Find out whether it is a flood (many sources that never finish the handshake: ss -tan state syn-recv). "
	if c := s.Losses().Clients; c != nil && c.Flood != nil && c.Flood.Certain {
		text = ""
	}
	if v, ok := s.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return text + "Switch SYN cookies on: sysctl -w net.ipv4.tcp_syncookies=1; a full SYN queue then loses nobody, at the price of window scaling and SACK for clients without timestamps. maxConnections and threads have no part in it."
	}
	return text + "The SYN queue is as long as the listener's backlog. " + BacklogChange(s, synQueueWanted(s)) + " Threads and maxConnections have no part in it."
}
