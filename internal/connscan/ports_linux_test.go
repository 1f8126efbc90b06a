package connscan

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// Forty servers of a namespace have each as many workers as are read, and all of these hold connections to the busiest peer: a search
// reads the workers of two, each search those of the next ones, and who was found stays until it is its turn again.
func TestWorkersAreReadInTurns(t *testing.T) {
	const netns, servers, ports, size = 1, 40, 90, 100
	files := make(map[string]string)
	for i := range servers {
		pid, children := 1000+i, ""
		stat := func(pid int) {
			files[fmt.Sprint(pid, "/stat")] = fmt.Sprintf("%d (nginx) S 1 1 1 0 -1 4194560 1 0 5 0 100 50 0 0 20 0 1 0 100 1000 100 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n", pid)
			files[fmt.Sprint(pid, "/status")] = "Name:\tnginx\nFDSize:\t64\n"
		}
		stat(pid)
		for j := range 2 * mostWorkers {
			stat(10_000 + 100*i + j)
			children += fmt.Sprint(10_000+100*i+j, " ")
		}
		files[fmt.Sprintf("%d/task/%d/children", pid, pid)] = children
	}
	dir := proctest.Fake(t, files)
	peers, peer := make(connections.Peers), netip.MustParseAddrPort("10.0.0.9:5432")
	r, store, left := &facts.Watchlist{}, facts.NewStore(), make(map[hostproc.ProcessKey]bool)
	for i := range ports {
		peers.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: uint32(1 + i), Remote: peer}, connections.Reuse{})
	}
	for i := range servers {
		key := hostproc.ProcessKey{PID: 1000 + i, StartTime: 100}
		r.Watched = append(r.Watched, facts.Watched{Listening: &facts.Listening{
			ID:    model.ListenerID{NetNS: netns, Address: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(1000+i))},
			Owner: &owner.Process{PID: key.PID, StartTime: key.StartTime}, Members: []sockdiag.Listener{{}},
		}})
		store.PutProcess(key, time.Now(), &model.Process{OpenFiles: new(1), Children: 2 * mostWorkers}, nil)
		left[key] = true
		for j := range 2 * mostWorkers {
			fd := filepath.Join(dir, fmt.Sprint(10_000+100*i+j), "fd")
			require.NoError(t, os.MkdirAll(fd, 0o755))
			require.NoError(t, os.Symlink(fmt.Sprintf("socket:[%d]", 1+i), filepath.Join(fd, "0")))
		}
	}
	r.Index()
	s := New(hostfs.At(t, dir), store, time.Now)
	var after hostproc.ProcessKey
	for search := 1; len(left) > 0; search++ {
		require.LessOrEqual(t, search, servers/2)
		found, last := s.busiest(r, netns, peers, size, after)
		require.Len(t, found, 2*search)
		for key, d := range found {
			require.Equal(t, ports, d.Ports)
			delete(left, key)
		}
		after = last
		store.PutBusiest(netns, found)
	}
	few := make(connections.Peers)
	for i := range portsFrom - 1 {
		few.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: uint32(1 + i), Remote: peer}, connections.Reuse{})
	}
	found, _ := s.busiest(r, netns, few, portsFrom, after)
	require.Empty(t, found, "whoever administers a namespace may have it so small")
}
