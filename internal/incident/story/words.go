package story

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Lasted is from the first trouble to the last.
func (s *Story) Lasted() time.Duration {
	last := s.Header.Began
	for _, p := range s.Points {
		if at := time.Unix(p.At, 0); p.Status >= model.StatusSaturated && at.After(last) {
			last = at
		}
	}
	return last.Sub(s.Header.Began)
}

// Happened says what happened, in sentences. For a moment a queue can exceed its limit by a few, and counts that are read
// one after the other their sum: more than there is room for is not said.
func (s *Story) Happened() []string {
	w := &s.Worst.Listener.Verdict
	began := s.Events[0]
	out := []string{
		fmt.Sprintf("At %s %s%s became %s%s.", recording.Clock(s.Header.Began), model.Printable(s.Header.Address), on(s.Header.Host), began.Status, because(began.Cause)),
	}
	out = append(out, s.beginning()...)
	if w.Status != began.Status || w.Cause != began.Cause {
		out = append(out, fmt.Sprintf("At its worst, %s, it was %s%s.", s.Worst.At.UTC().Format(time.TimeOnly), w.Status, because(w.Cause)))
	}
	out = append(out, model.Printable(w.Summary), s.closed(), s.course())
	if n := s.Peak; n > 0 && s.Worst.Listener.AcceptQueue != nil {
		capacity := s.Worst.Listener.AcceptQueue.Capacity()
		out = append(out, phrase.Sprintf("The accept queue held at most %d of %d.", min(n, capacity), capacity))
	}
	if room := s.Worst.Listener.Capacity(); s.Inside > 0 && room != nil {
		out = append(out, phrase.Sprintf("At most %s inside at once, of %d for whom there is room.", phrase.Count(min(s.Inside, *room), "client")+" "+phrase.Verb(min(s.Inside, *room), "was", "were"), *room))
	}
	return slices.DeleteFunc(out, func(line string) bool { return line == "" })
}

// closed says since when nothing listened, where that is not the whole of it.
func (s *Story) closed() string {
	i := slices.IndexFunc(s.Events, func(e Event) bool { return e.Status == model.StatusDown })
	if i <= 0 || s.Worst.Listener.Verdict.Status == model.StatusDown {
		return ""
	}
	return fmt.Sprintf("From %s nothing listened.", s.Events[i].At.UTC().Format(time.TimeOnly))
}

// beginning says what was full first.
func (s *Story) beginning() (out []string) {
	if full := s.filled(); len(full) > 0 {
		out = append(out, phrase.Capital(strings.Join(full, "; "))+".")
	}
	if f := s.Filling(); f != nil {
		out = append(out, f.String())
	}
	return out
}

func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + model.Printable(host)
}

func because(c model.Cause) string {
	if c == model.CauseNone {
		return ""
	}
	return " (" + model.Printable(string(c)) + ")"
}

// course says how long it lasted and how the recording ends.
func (s *Story) course() string {
	lasted := phrase.Seconds(s.Lasted())
	switch {
	case s.Going && !s.Continues():
		return "The trouble lasted " + lasted + "; the minute after it is being recorded, until now " + recording.Clock(s.Summary.LastSeen) + "."
	case s.Going:
		return "The trouble has been seen for " + lasted + " and continues: this is what was recorded until " + recording.Clock(s.Summary.LastSeen) + "."
	}
	switch s.Summary.Reason {
	case recording.EndOver:
		return "The trouble lasted " + lasted + "; the minute after it was calm."
	case recording.EndClosed:
		return "The trouble was seen for " + lasted + "; then nothing listened any more."
	case recording.EndStopped:
		return "The trouble was seen for " + lasted + "; the agent was stopped at " + recording.Clock(s.Summary.Ended) + ", during the incident."
	case recording.EndDisplaced:
		return "The trouble was seen for " + lasted + "; at " + recording.Clock(s.Summary.Ended) + " the recording was ended for an incident of another owner, who had less than the share."
	case recording.EndInterrupted:
		return "The trouble was seen for " + lasted + "; the recording ends at " + recording.Clock(s.Summary.LastSeen) + ", when the agent was killed."
	}
	return "The trouble was seen for " + lasted + "; the recording ends at " + recording.Clock(s.Summary.LastSeen) + ": it has not ended, or the agent was killed."
}

// Clients says what clients saw.
func (s *Story) Clients() []string {
	var out []string
	for _, saw := range s.Saw {
		if text := sawText(saw); text != "" {
			out = append(out, text)
		}
	}
	if s.Summary.Status == model.StatusDown && !slices.Contains(s.Saw, diagnosis.SeenRefused) {
		out = append(out, sawText(diagnosis.SeenRefused))
	}
	if c := s.Counted.Clients; c != nil && c.Outcomes != [model.NumClientOutcomes]uint64{} {
		out = append(out, s.counted(c))
	}
	if len(out) == 0 {
		out = append(out, "No packet of a client was dropped and no client was reset: those who came waited.")
	}
	return out
}

func sawText(saw string) string {
	switch saw {
	case diagnosis.SeenConnectTimeout:
		return "Connect timeouts, or a delay of a second and more: the kernel dropped the SYN without an answer, and the client tried again."
	case diagnosis.SeenReadTimeout:
		return "Read timeouts: the client believed that it was connected, or gave up while its request waited."
	case diagnosis.SeenReset:
		return "Resets: connections in the accept queue were reset."
	case diagnosis.SeenRefused:
		return "Refused connections: nothing listened on the port."
	}
	return ""
}

// callers is what clients are called, and from where they came.
func (s *Story) callers() (noun, from string) { return diagnosis.Callers(s.Summary.Proxies) }

// counted says how many clients there were, and how many packets of them were
// dropped.
func (s *Story) counted(c *model.ClientTotals) string {
	var parts []string
	noun, _ := s.callers()
	if text := diagnosis.ClientsPhrase(&model.Clients{ClientTotals: *c, Waits: s.Waits}, noun); text != "" {
		parts = append(parts, text)
	}
	add := func(n uint64, one, many string) {
		if n == 0 {
			return
		}
		who := phrase.Number(n)
		if len(parts) == 0 {
			who = phrase.Count(n, noun)
		}
		parts = append(parts, who+" "+phrase.Verb(n, one, many))
	}
	add(c.Outcomes[model.ClientConnected], "was let in at once", "were let in at once")
	add(c.Outcomes[model.ClientHalfOpen], "apparently did not answer the SYN-ACK", "apparently did not answer the SYN-ACK")
	out := "By their handshakes: " + strings.Join(parts, ", ") + "; " + phrase.Count(s.Counted.Packets(), "packet") + " dropped."
	if a := &c.Answers; a.Known && a.Answered > 0 && a.Answered <= c.LetIn {
		out += phrase.Sprintf(" %d of the %d let in had an answer.", a.Answered, c.LetIn)
	}
	if n := c.Answers.Checks; n > 0 {
		out += " " + phrase.Number(n) + " of those let in " + phrase.Verb(n, "was a check: it", "were checks: they") + " asked for nothing."
	}
	return out
}

// Lost are the numbers of what was lost.
func (s *Story) Lost() []string {
	var out []string
	for _, d := range s.Counted.Dropped {
		out = append(out, fmt.Sprintf("%s dropped: %s", phrase.Count(d.Packets, packetName(d.Packet)), model.Printable(string(d.Cause))))
	}
	if n := s.Counted.Pending; n > 0 {
		out = append(out, phrase.Count(n, "packet")+" dropped: the cause was still being read")
	}
	if n := s.Counted.QueueResets; n > 0 {
		out = append(out, phrase.Count(n, "queued connection")+" reset when the listener closed")
	}
	if n := s.Counted.AbandonedRequests; n > 0 {
		out = append(out, phrase.Count(n, "request")+" abandoned by the client")
	}
	return out
}

func packetName(p model.Packet) string {
	switch p {
	case model.PacketSYN:
		return "SYN"
	case model.PacketACK:
		return "final ACK"
	}
	return "packet"
}

// Setting is a limit that was in force, and where it comes from.
type Setting struct{ Name, Value, Source, Note string }

// Settings are those of the worst moment.
func (s *Story) Settings() []Setting {
	var out []Setting
	l := &s.Worst.Listener
	if c := l.Connector; c != nil {
		for _, n := range []struct {
			name string
			*model.Setting[int]
		}{{"maxConnections", c.MaxConnections}, {"acceptCount", c.AcceptCount}, {"maxThreads", c.MaxThreads}, {"minSpareThreads", c.MinSpareThreads}, {"maxQueueSize", c.MaxQueue}} {
			if n.Setting != nil {
				out = append(out, Setting{n.name, limit(n.Value), n.Origin(), n.Note})
			}
		}
		for _, n := range []struct {
			name string
			*model.Setting[time.Duration]
		}{{"connectionTimeout", c.ConnectionTimeout}, {"keepAliveTimeout", c.KeepAliveTimeout}} {
			if n.Setting != nil {
				out = append(out, Setting{n.name, phrase.Seconds(n.Value), n.Origin(), n.Note})
			}
		}
	}
	if q := l.AcceptQueue; q != nil {
		out = append(out, Setting{"backlog in force", phrase.Number(q.Limit), "kernel (Send-Q)", ""})
	}
	if p := l.Process; p != nil && p.OpenFilesLimit != nil {
		out = append(out, Setting{"open files", phrase.Number(*p.OpenFilesLimit), "kernel (limits of the process)", ""})
	}
	out = append(out, sysctls(l)...)
	for i := range out {
		out[i].Source, out[i].Note = model.Printable(out[i].Source), model.Printable(out[i].Note)
	}
	return out
}

// limit is a number that may stand for none: Tomcat's maxConnections at -1, and
// Integer.MAX_VALUE, the default of maxQueueSize and of a queue in Spring Boot.
func limit(n int) string {
	if n < 0 || n >= math.MaxInt32 {
		return "no limit"
	}
	return phrase.Number(n)
}

func sysctls(l *model.Listener) (out []Setting) {
	if l.Basis == nil {
		return nil
	}
	for _, name := range []string{"somaxconn", "tcp_max_syn_backlog", "tcp_syncookies", "tcp_abort_on_overflow"} {
		if v, ok := l.Basis.Sysctl[name]; ok {
			out = append(out, Setting{name, phrase.Number(v), "kernel (sysctl)", ""})
		}
	}
	return out
}

// Incomplete says what of the recording is missing, "" where it is whole.
func (s *Story) Incomplete() string {
	var parts []string
	if s.Damaged > 0 {
		parts = append(parts, phrase.Count(s.Damaged, "record")+" could not be read")
	}
	if s.Torn {
		parts = append(parts, "the last record was not written to its end")
	}
	if len(parts) == 0 {
		return ""
	}
	return phrase.Capital(strings.Join(parts, "; ")) + "."
}
