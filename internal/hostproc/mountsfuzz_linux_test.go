package hostproc

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// FuzzMounts reads lists of mounts, whose names are the mounter's choice: no list
// admits a file system that is not on the allow-list.
func FuzzMounts(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"))
	m.Add([]byte("1009 36 0:31 / /a\\040b rw - fuse.sshfs - rw\n7 6 0:3 / /nothing rw\nnot a mount\n"))
	m.Add([]byte("40 36 0:31 / /x rw shared:3 - overlay overlay rw,lowerdir=/a - ext4\n"))
	m.Fuzz(func(t *testing.T, list []byte) {
		mounts, err := ReadMounts(Agent, false, bytes.NewReader(list))
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(mounts.types), 1+bytes.Count(list, []byte("\n")))
		for id, kind := range mounts.types {
			if err := mounts.admit(-1, id); err == nil {
				require.True(t, Agent.may(kind))
			} else {
				require.NotContains(t, err.Error(), "\x1b")
				require.Less(t, len(err.Error()), 100+4*maxKind)
			}
		}
	})
}
