package lab

import (
	"fmt"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// words is what tcpdiag says of a listener, in a line.
func words(l *rig.Listener) string {
	v := l.Verdict
	text := "**" + v.Status + "**"
	if v.Cause != "" {
		text += " `" + v.Cause + "`"
	}
	if len(v.Chain) > 0 {
		text += " (" + strings.Join(v.Chain, " → ") + ")"
	}
	return strings.Join(append([]string{text}, numbers(l)...), ", ")
}

func numbers(l *rig.Listener) []string {
	var out []string
	add := func(n int, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, what))
		}
	}
	if c := l.Connections; c != nil {
		for _, phase := range []struct {
			n    int
			name string
		}{
			{c.InService, "in service"},
			{c.Waiting, "waiting"},
			{c.Sending, "sending"},
			{c.Idle, "idle"},
			{c.ClientClosed, "client_closed"},
			{c.Unclassified, "unclassified"},
		} {
			add(phase.n, phase.name)
		}
		if c.Reset != nil {
			add(*c.Reset, "reset")
		}
	}
	if q := l.AcceptQueue; q != nil {
		queue := fmt.Sprintf("queue %d/%d", q.Length, q.Capacity)
		if q.Peak != nil && *q.Peak > q.Length {
			queue += fmt.Sprintf(" (peak %d)", *q.Peak)
		}
		out = append(out, queue)
	}
	if l.Capacity != nil {
		out = append(out, fmt.Sprintf("capacity %d", *l.Capacity))
	}
	if s := l.Losses; s != nil {
		add(s.DroppedPackets, "packets dropped"+causes(s))
		add(s.Unattributed, "unattributed")
		add(s.AbandonedRequests, "requests abandoned")
		add(s.QueueResets, "reset in the queue")
	}
	return out
}

// causes of the dropped packets, when there are several or another than the
// verdict's.
func causes(s *rig.Losses) string {
	var parts []string
	for _, by := range s.By {
		if by.Packets > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %d", by.Cause, by.Packet, by.Packets))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, ", ") + "]"
}

// setting is a limit with its source.
func setting(s *rig.Setting) string {
	if s == nil {
		return "n/a"
	}
	return fmt.Sprintf("%d (%s)", s.Value, s.Source)
}

// codes are those of a verdict's findings.
func codes(l *rig.Listener) string {
	var out []string
	for _, f := range l.Verdict.Findings {
		out = append(out, "`"+f.Code+"`")
	}
	return strings.Join(out, ", ")
}

func decimal(n int) string { return fmt.Sprintf("%d", n) }
