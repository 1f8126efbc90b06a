package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// synBacklog: SYNs are dropped before the accept queue. The kernel's counters name it.
func synBacklog() Cause {
	return Cause{
		Name:     model.CauseSynBacklog,
		OnlyFull: true,
		Full:     func(s *symptoms.Symptoms, _ model.Cause) bool { return s.SynQueueFull() },
		Depth:    10,
		Because: func(*symptoms.Symptoms, model.Verdict) string {
			return " at the SYN queue, before their handshake was complete"
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string { return words.Join(words.SynNumbers(s)) },
		Advice:   func(s *symptoms.Symptoms, _ model.Verdict) string { return adviseSynBacklog(s) },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return synBacklogSteps(s), "More threads or connections: these clients have not come that far."
		},
		Book: Runbook{
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

func synBacklogSteps(s *symptoms.Symptoms) (do []model.Step) {
	if c := s.Losses().Clients; c == nil || c.Flood == nil || !c.Flood.Certain {
		do = append(do, advice.Command("Find out whether it is a flood: many sources that never finish the handshake",
			phrase.Sprintf("ss -tan state syn-recv sport = :%v", s.Now.Port)))
	}
	if v, ok := s.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return append(do, model.Step{
			Text: "Switch SYN cookies on: a full SYN queue then loses nobody", Command: "sysctl -w net.ipv4.tcp_syncookies=1",
			Setting: "net.ipv4.tcp_syncookies", From: "0", To: "1", Limit: reading.LimitCookies,
		})
	}
	return append(do, advice.BacklogSteps(s, synQueueWanted(s))...)
}

// synQueueWanted: the SYN queue is as long as the listener's backlog.
func synQueueWanted(s *symptoms.Symptoms) int {
	to := 1024
	if q := s.Now.AcceptQueue; q != nil {
		to = max(to, advice.RoundUp(2*q.Limit))
	}
	return to
}

func adviseSynBacklog(s *symptoms.Symptoms) string {
	text := "Find out whether it is a flood (many sources that never finish the handshake: ss -tan state syn-recv). "
	if c := s.Losses().Clients; c != nil && c.Flood != nil && c.Flood.Certain {
		text = ""
	}
	if v, ok := s.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return text + "Switch SYN cookies on: sysctl -w net.ipv4.tcp_syncookies=1; a full SYN queue then loses nobody, at the price of window scaling and SACK for clients without timestamps. maxConnections and threads have no part in it."
	}
	return text + "The SYN queue is as long as the listener's backlog. " + advice.BacklogChange(s, synQueueWanted(s)) + " Threads and maxConnections have no part in it."
}
