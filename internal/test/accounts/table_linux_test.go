package accounts

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// table is docs/results/accounts.md: a row for each shape of a seed. Those that were not run
// this time stay.
type table struct {
	seed uint64
	mu   sync.Mutex
	rows map[int]string
}

const tableFile = "../../../docs/results/accounts.md"

// add is called when a shape has ended, be it that the tap is off.
func (b *table) add(t testing.TB, i int, r *result) {
	want, e, s := r.truth(), &r.tap, r.shape
	both := func(want, got uint64) string {
		if want == got {
			return fmt.Sprint(want)
		}
		return fmt.Sprintf("%d / %d", want, got)
	}
	way, result := "loopback", "as they say"
	if s.veth {
		way = "veth"
	}
	if t.Failed() {
		result = "**off**"
	}
	abort := ""
	if s.abort {
		abort = ", abort"
	}
	row := fmt.Sprintf("| %d | %d, %d of them checks, over %v by %s | connect %v, read %v | %d / %d / %d, %v, cookies %d%s | %s | %s | %s | %s | %s | %s | %s | %s | %d | %v | %s |",
		i, s.clients, s.checks, s.spread, way, s.patience.connect, s.patience.read,
		s.server.MaxThreads, s.server.MaxConnections, s.server.AcceptCount, s.server.ServiceTime, s.cookies, abort,
		both(want.answered, e.Answers.Answered), both(want.gaveUp, e.Clients[outcome.GaveUp]), both(want.reset, e.Clients[outcome.Reset]),
		both(want.stalled, e.Clients[outcome.Stalled]), both(want.unanswered, e.Answers.Unanswered), both(want.checks, e.Answers.Checks),
		both(want.letIn, e.LetIn), both(uint64(len(r.made)), e.LetIn+e.LetInLate), e.Clients[outcome.Undecided], r.worst.Round(time.Millisecond), result)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[i] = row
}

// write writes it, as a proof.
func (b *table) write(t testing.TB) {
	if !proof.Full() {
		return
	}
	head := fmt.Sprintf(`# Clients' own accounts

Written by the proof `+"`accounts`"+`. Bursts of 30 to 2,000 clients, each of which keeps its own
account, at a server with Tomcat's limits; drawn from the seed %d (TCPDIAG_ACCOUNTS_SEED).
Beside the clients' own number stands, behind a stroke, what the tap says where that is
another. Sockets are those that the kernel made, by its trace (sock:inet_sock_set_state), and
those let in, in time or late, by the tap. A delay is how much later than its handshake takes
a client was let in; the worst is the one farthest from the kernel's trace.

Reset beside stalled: who left with a request that was never acknowledged, and whose kernel is
sent a RST for what it repeats, is called reset. No packet says that nobody is there any more.

| # | clients | patience | threads / connections / acceptCount | answered | gave up | reset | stalled | unanswered | checks | let in | sockets | undecided | worst delay off by | |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`, b.seed)
	old, err := os.ReadFile(tableFile)
	if err == nil && strings.HasPrefix(string(old), head) {
		for lines := bufio.NewScanner(strings.NewReader(string(old)[len(head):])); lines.Scan(); {
			var i int
			if _, err := fmt.Sscanf(lines.Text(), "| %d |", &i); err == nil && b.rows[i] == "" {
				b.rows[i] = lines.Text()
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(b.rows)) {
		head += b.rows[i] + "\n"
	}
	require.NoError(t, os.WriteFile(tableFile, []byte(head), 0o644))
}
