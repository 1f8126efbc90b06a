package netns_test

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A rule that drops and counts has its packets, and its port where it is for one; one that
// accepts, or has no counter, is left out.
func TestRulesThatDrop(t *testing.T) {
	nettest.Root(t)
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("nft is not installed")
	}
	a, b := nettest.Namespace(t), nettest.Namespace(t)
	_, addr := nettest.Veth(t, a, b)
	b.Do(func() {
		server := nettest.Listen(t, nettest.ListenOptions{Address: netip.AddrPortFrom(addr, 0).String(), Backlog: 5})
		load := b.Command(nft, "-f", "-")
		load.Stdin = strings.NewReader(fmt.Sprintf(`table inet firewall {
	chain input {
		type filter hook input priority 0;
		tcp dport 9999 counter drop
		iif lo counter accept
		tcp dport %d tcp flags syn counter drop
		udp dport 53 drop
		counter reject
	}
}`, server.Addr.Port()))
		out, err := load.CombinedOutput()
		require.NoError(t, err, "%s", out)
		f, err := netns.OpenFilter()
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		a.Do(func() { nettest.Attempts(t, server.Addr, 3) })
		got := map[string]uint64{}
		rulesRead(t, f, got)
		dropped := fmt.Sprintf("nft inet firewall input handle 4 drop dport %d", server.Addr.Port())
		require.Contains(t, got, dropped)
		require.GreaterOrEqual(t, got[dropped], uint64(3))
		require.Contains(t, got, "nft inet firewall input handle 2 drop dport 9999")
		require.Zero(t, got["nft inet firewall input handle 2 drop dport 9999"])
		require.Contains(t, got, "nft inet firewall input handle 6 reject")
		require.EqualValues(t, 1, got[model.RulesRead], "they were read")
		require.Len(t, got, 4)
		require.NoError(t, f.Conntrack(got))
		require.Contains(t, got, "nf_conntrack_insert_failed")

		load = b.Command(nft, "-f", "-")
		load.Stdin = strings.NewReader("table inet many {\n chain input {\n" + strings.Repeat("udp dport 53 counter drop\n", 70) + "}\n}\n")
		out, err = load.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Eventually(t, func() bool {
			clear(got)
			require.NoError(t, f.Rules(got, 1))
			return got[model.RulesRead] == 0
		}, 5*time.Second, 10*time.Millisecond, "more than are read: not all of them are known")
	})
}

// rulesRead waits for a reading of the rules.
func rulesRead(t *testing.T, f *netns.Filter, got map[string]uint64) {
	t.Helper()
	nettest.Within(t, time.Minute, "the rules are read", func() bool {
		require.NoError(t, f.Rules(got, 1))
		return got[model.RulesRead] > 0
	})
}

// Whoever administers a namespace can have a million rules in it. The counters of all namespaces are read one after the
// other, and between the samples: none of them waits for his.
func TestRulesAreNotWaitedFor(t *testing.T) {
	f, got := netns.NewUnanswered(), map[string]uint64{}
	for range 3 {
		require.NoError(t, f.Rules(got, 1))
	}
	require.Empty(t, got)
}

// Who looks once has them, however long the reading takes, up to a time: and again when he looks the last time.
func TestRulesForWhoLooksOnce(t *testing.T) {
	got := map[string]uint64{}
	begun := time.Now()
	require.NoError(t, netns.NewUnanswered().RulesOnce(got, 50*time.Millisecond))
	require.Empty(t, got)
	require.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
	nettest.Root(t)
	nettest.Namespace(t).Do(func() {
		f, err := netns.OpenFilter()
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		require.NoError(t, f.Rules(got, 1_000_000)) // the next one rests for long
		rulesRead(t, f, got)
		time.Sleep(250 * time.Millisecond)
		require.NoError(t, f.RulesOnce(got, time.Minute))
		require.EqualValues(t, 2, got[model.RulesRead])
		first, err := netns.OpenFilter()
		require.NoError(t, err)
		defer func() { require.NoError(t, first.Close()) }()
		clear(got)
		require.NoError(t, first.RulesOnce(got, time.Minute))
		require.EqualValues(t, 1, got[model.RulesRead])
	})
}

// What the rules of many namespaces may cost is what those of one may.
func TestRulesOfManyNamespacesAreReadLessOften(t *testing.T) {
	nettest.Root(t)
	nettest.Namespace(t).Do(func() {
		f, err := netns.OpenFilter()
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		got := map[string]uint64{}
		require.NoError(t, f.Rules(got, 1_000_000))
		rulesRead(t, f, got)
		for range 100 {
			require.NoError(t, f.Rules(got, 1))
			time.Sleep(time.Millisecond)
		}
		require.EqualValues(t, 1, got[model.RulesRead])
	})
}
