package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// sentAgain are segments of open connections that a network namespace has sent again, beside others, and SYN-ACKs that it has.
func sentAgain(segments, others, synAcks uint64) func(*symptoms.Input) {
	return func(e *symptoms.Input) {
		e.Delta["RetransSegs"], e.Delta["TCPSynRetrans"], e.Delta["OutSegs"] = segments+synAcks, synAcks, others
	}
}

// late are clients that were let in late, and others that were let in at once.
func late(n, others uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		answers(n+others, 0)(l)
		outcome(model.ClientDelayed, n)(l)
		outcome(model.ClientConnected, others)(l)
	}
}

// repeating are as many of ten idle connections on which much was sent again.
func repeating(n int) look {
	return calm().idle(10).do(answers(10, 0)).do(func(l *model.Listener) { l.Connections.Repeating = n })
}

func scenariosNetwork() []scenario {
	const lossy = model.CauseLossyNetwork
	return []scenario{
		{
			name: "a network that loses some packets of all kinds, and nobody is known to fail", status: warning, cause: lossy,
			now: calm().do(late(12, 40)), before: calm(), change: sentAgain(90, 540, 30),
		},
		{
			name: "the same, and clients give up", status: losing, cause: lossy,
			now: calm().do(late(12, 40)).do(unreached(4, 2)), before: calm().do(unreached(0, 2)), change: sentAgain(90, 540, 30),
		},
		{
			name: "the same, and a client left that believed to be connected", status: losing, cause: lossy,
			now: calm().do(late(0, 8)).do(outcome(model.ClientStalled, 1)), before: calm(), change: sentAgain(60, 540, 3),
		},
		{
			name: "the same, and a rule here drops that many", status: losing, cause: lossy,
			now: calm().do(late(12, 40)).do(unreached(4, 2)), before: calm().do(unreached(0, 2)), change: func(e *symptoms.Input) {
				sentAgain(90, 540, 30)(e)
				e.Delta["nft inet filter output handle 3 drop"] = 120
			},
		},
		{
			name: "SYN-ACKs alone are lost", status: losing, cause: model.CauseBeforeListener,
			now: calm().do(late(12, 40)).do(unreached(20, 4)), before: calm().do(unreached(0, 5)), change: sentAgain(0, 540, 90),
		},
		{
			name: "kept connections on which segments are lost, and few clients that connect", status: warning, cause: lossy,
			now: repeating(8), before: repeating(7), change: sentAgain(150, 500, 2),
		},
		{
			name: "one reading of these", status: ok, codes: []string{"segments_repeated"}, notCodes: []string{"lossy_network"},
			now: repeating(8), before: repeating(0), change: sentAgain(150, 500, 2),
		},
		{
			name: "segments are sent again, on other connections of the network namespace", status: ok, codes: []string{"segments_repeated"}, notCodes: []string{"lossy_network"},
			now: repeating(1), before: repeating(1), change: sentAgain(150, 500, 2),
		},
		{
			name: "two in a hundred, as on the Internet, and as many clients", status: ok, notCodes: []string{"segments_repeated", "lossy_network"},
			now: calm().do(late(6, 294)), before: calm(), change: sentAgain(100, 4900, 6),
		},
		{
			name: "a few segments of a quiet server", status: ok, notCodes: []string{"segments_repeated", "lossy_network"},
			now: calm().do(late(3, 4)), before: calm(), change: sentAgain(9, 40, 3),
		},
		{
			name: "clients are late, as they wait before they send (TCP_DEFER_ACCEPT)", status: ok, notCodes: []string{"lossy_network"},
			now: calm().do(late(30, 20)), before: calm(), change: sentAgain(0, 500, 30),
		},
		{
			name: "a full server, and a network that loses packets as well: what its clients wait for is the threads", status: losing, cause: threads, chain: chainOf(threads), codes: []string{"segments_repeated"},
			now: full().do(answers(2, 8)).do(outcome(model.ClientDelayed, 9)), before: full(), change: sentAgain(90, 540, 30),
		},
		{
			name: "clients that acknowledge nothing: what is sent again is theirs", status: warning, codes: []string{"unacknowledged", "segments_repeated"}, notCodes: []string{"lossy_network"},
			now: calm().do(unacknowledged(20)), before: calm().do(unacknowledged(20)), change: sentAgain(60, 100, 0),
		},
	}
}

// full is a server whose threads are used up.
func full() look { return tomcat(4, 100, 10).pool(4).inService(4).waiting(5) }

func calm() look { return tomcat(200, 8192, 10).pool(10) }
