package discovery

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestBounded(t *testing.T) {
	list := make([]model.Unavailable, 1000)
	for i := range list {
		list[i] = model.Unavailable{What: "file \x1b[2J\u202e", Why: strings.Repeat("é", 10_000)}
	}
	got := examine.Bounded(7, list)
	require.Len(t, got, examine.MaxUnavailable+1)
	require.Equal(t, `file \x1b[2J\u202e`, got[0].What)
	require.Less(t, len(got[0].Why), examine.MaxSentence+20)
	require.Equal(t, model.Unavailable{What: "968 more of pid 7", Why: "too many to name"}, got[examine.MaxUnavailable])
}

func TestPrintableConnectors(t *testing.T) {
	hostile := "-Da\x1b\xff"
	known := &model.Setting[int]{Value: 1, Source: hostile, Note: hostile}
	at := netip.MustParseAddrPort("[::]:8080")
	c := printable(match.Connectors{at: {Executor: hostile, MaxThreads: known}})[at]
	require.Equal(t, `-Da\x1b\xff`, c.Executor)
	require.Equal(t, &model.Setting[int]{Value: 1, Source: `-Da\x1b\xff`, Note: `-Da\x1b\xff`}, c.MaxThreads)
	require.Equal(t, hostile, known.Source, "what is remembered stays as it was")
}

func TestShownURL(t *testing.T) {
	require.Equal(t, "http://h:1/actuator", shownURL("http://user:word@h:1/actuator?token=x#y"))
	require.NotContains(t, shownURL("http://user:wo rd@h\x7f/"), "rd")
}
