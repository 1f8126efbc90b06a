package reader

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// countedReader counts the readers that are open.
type countedReader struct{ open *int }

func (countedReader) Read() evidence.Reading { return evidence.Reading{} }
func (r countedReader) Close()               { *r.open-- }

// A server that restarts again and again leaves no files open behind it, and what was
// judged of it stays for as long as readings are kept.
func TestReadersOfRestartedListenersAreClosed(t *testing.T) {
	now, open := time.Unix(1_700_000_000, 0), 0
	store := facts.NewStore()
	as := NewAcceptors(hostproc.FS{}, store, nil, func() time.Time { return now }, func(hostproc.ProcessKey, Listener) AcceptorReader {
		open++
		return countedReader{&open}
	})
	id := model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort("0.0.0.0:8080")}
	watched := func(pid int, inode uint32) *facts.Watchlist {
		return &facts.Watchlist{Watched: []facts.Watched{{Listening: &facts.Listening{
			ID: id, Members: []sockdiag.Listener{{Inode: inode}}, Owner: &owner.Process{PID: pid},
		}}}}
	}
	for restart := range 5 {
		r := watched(100+restart, uint32(1+restart))
		as.Read(&r.Watched[0], 0, 0, r, evidence.Phases{})
		as.Retain(r)
		require.Equal(t, 1, open, "only that of the socket that is watched now")
		now = now.Add(time.Second)
	}
	list := store.Judgements(id)
	_, ok := list.Last()
	require.True(t, ok)

	as.Retain(&facts.Watchlist{})
	store.Retain(&facts.Watchlist{})
	require.Zero(t, open, "nothing is watched any more")
	list = store.Judgements(id)
	_, ok = list.Last()
	require.False(t, ok)

	r := watched(200, 9)
	as.Read(&r.Watched[0], 0, 0, r, evidence.Phases{})
	now = now.Add(openFor)
	as.Retain(r)
	require.Zero(t, open, "the trouble is over")
	list = store.Judgements(id)
	_, ok = list.Last()
	require.False(t, ok)
}
