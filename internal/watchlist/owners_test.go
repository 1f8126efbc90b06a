package watchlist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Whoever joins an address (SO_REUSEPORT) does not become whose it is, wherever the kernel lists his socket
// and however full his queue is; of the owner's own cgroup the process in trouble is the one.
func TestWhoJoinsAnAddressDoesNotOwnIt(t *testing.T) {
	const honest, worker, hostile = 100, 101, 50 // pids; the hostile one's number is the lowest
	started := map[int]uint64{honest: 1000, worker: 1001, hostile: 2000}
	for name, tt := range map[string]struct {
		members []sockdiag.Listener // the inode is the pid
		want    int
	}{
		"last":                       {[]sockdiag.Listener{{Inode: honest, Cgroup: 7}, {Inode: hostile, Cgroup: 8}}, honest},
		"first":                      {[]sockdiag.Listener{{Inode: hostile, Cgroup: 8}, {Inode: honest, Cgroup: 7}}, honest},
		"its queue alone is full":    {[]sockdiag.Listener{{Inode: hostile, Cgroup: 8, RecvQ: 5}, {Inode: honest, Cgroup: 7}}, honest},
		"the owner's worker's is":    {[]sockdiag.Listener{{Inode: hostile, Cgroup: 8}, {Inode: honest, Cgroup: 7}, {Inode: worker, Cgroup: 7, RecvQ: 5}}, worker},
		"a kernel without cgroups":   {[]sockdiag.Listener{{Inode: honest}, {Inode: worker, RecvQ: 5}}, worker},
		"one whose process is known": {[]sockdiag.Listener{{Inode: 9, RecvQ: 5}, {Inode: honest}}, honest},
	} {
		t.Run(name, func(t *testing.T) {
			o := &owners{byInode: make(map[uint32]owner.Process)}
			for pid, start := range started {
				o.byInode[uint32(pid)] = owner.Process{PID: pid, StartTime: start}
			}
			c := &Candidate{Listening: facts.Listening{Members: tt.members}}
			o.assign(c)
			require.Equal(t, tt.want, c.Owner.PID)
		})
	}
	c := &Candidate{Listening: facts.Listening{Members: []sockdiag.Listener{{Inode: 9, RecvQ: 5}}}}
	(&owners{}).assign(c)
	require.Nil(t, c.Owner)
}
