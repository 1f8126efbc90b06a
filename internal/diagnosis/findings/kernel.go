package findings

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// OfKernel come from the namespace's own counters and sysctls: they are
// not this listener's alone.
func OfKernel(s *symptoms.Symptoms) []model.Finding {
	var out []model.Finding
	// Not TCPReqQFullDoCookies: it is counted before the accept queue is looked
	// at, which may drop the SYN after all. With tcp_syncookies=2 every SYN is
	// answered with a cookie, and that says nothing.
	if n := s.Delta["SyncookiesSent"]; n > 0 && s.Sysctl["tcp_syncookies"] != 2 {
		out = append(out, model.Finding{
			Code: "syncookies", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("A SYN queue was full%s and %s %s answered with a cookie (SyncookiesSent): these were not turned away.", words.InInterval(s), phrase.Count(n, "SYN"), phrase.Verb(n, "was", "were")),
			Advice:   "Nothing has to be done. If it is no flood, a larger acceptCount makes the SYN queue longer too.",
		})
	}
	if n := s.UnreadCloses(); n > 0 && s.Now.Listening() && s.ResetMany() == 0 && !s.ClosedUnread() {
		out = append(out, model.Finding{
			Code: "closed_unread", Severity: model.SeverityWarning,
			Evidence: phrase.Sprintf("%s of this network namespace %s closed%s with bytes that nobody had read (TCPAbortOnClose): the other end was reset. Whether it was this server's is not known: a client here that does not read its answer counts, too.", phrase.Count(n, "connection"), phrase.Verb(n, "was", "were"), words.InInterval(s)),
			Advice:   "If uploads are rejected here, or answered before they have been read, their clients see a reset instead of the answer: raise maxSwallowSize (server.tomcat.max-swallow-size, -1 for any), or read the body.",
		})
	}
	if n := s.LateUnknown(); n > 0 && s.ResetMany() == 0 {
		out = append(out, model.Finding{
			Code: "resets_unknown", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("%s of this network namespace %s answered with a reset%s (OutRsts), on no connection that was refused or reset otherwise. Whether they came for connections that this server had closed is not known: others' ports count, too, listened on or not.", phrase.Count(n, "segment"), phrase.Verb(n, "was", "were"), words.InInterval(s)),
			Advice:   "Follow handshakes (CAP_NET_RAW): then it is seen which port they leave. If a proxy keeps its connections for longer than keepAliveTimeout, its next request on one is reset.",
		})
	}
	if s.Sysctl["tcp_abort_on_overflow"] == 1 {
		out = append(out, model.Finding{
			Code: "abort_on_overflow", Severity: model.SeverityInfo,
			Evidence: "net.ipv4.tcp_abort_on_overflow is 1: a client whose final ACK meets a full accept queue is reset. SYNs are still dropped in silence.",
			Advice:   "Set it to 0 unless clients are known to retry after a reset: with 0 most of them get in on a retry.",
		})
	}
	if names := memoryPressure(s); len(names) > 0 {
		out = append(out, model.Finding{
			Code: "tcp_memory_pressure", Severity: model.SeverityWarning,
			Evidence: "The kernel ran short of memory for TCP" + words.InInterval(s) + ": " + strings.Join(names, ", ") + ".",
			Advice:   "Compare \"mem\" in /proc/net/sockstat with net.ipv4.tcp_mem (pages); fewer or smaller socket buffers, or more memory. Tomcat's limits have no part in it.",
		})
	}
	return out
}

// memoryPressure names the TcpExt counters that moved: entering the pressure
// of tcp_mem, and connections aborted for it. (PruneCalled and its like also
// count a single socket's full receive buffer.)
func memoryPressure(s *symptoms.Symptoms) []string {
	var out []string
	for _, name := range []string{"TCPMemoryPressures", "TCPAbortOnMemory"} {
		if n := s.Delta[name]; n > 0 {
			out = append(out, phrase.Sprintf("%s +%d", name, n))
		}
	}
	return out
}
