package hostproc

import (
	"bytes"
	"encoding/binary"
	"strings"
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

// FuzzAuxiliary reads auxiliary vectors, which a process may overwrite
// (PR_SET_MM_AUXV).
func FuzzAuxiliary(f *testing.F) {
	m := mutate.Into(f)
	var vector []byte
	for _, word := range []uint64{auxUID, 1000, auxEUID, 1000, auxGID, 7, auxEGID, 7, 0, 0} {
		vector = binary.NativeEndian.AppendUint64(vector, word)
	}
	m.Add(vector)
	m.Add([]byte{})
	m.Fuzz(func(t *testing.T, vector []byte) {
		require.LessOrEqual(t, len(auxiliary(vector)), 4)
	})
}

// FuzzMapped reads lists of mappings, whose paths are the process's choice: what
// is taken for performance data is the process's own pid, one folder deep.
func FuzzMapped(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /tmp/hsperfdata_root/42\n"))
	m.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /tmp/hsperfdata_a/../../etc/42 (deleted)\n/hsperfdata_/hsperfdata_x/42\n"))
	m.Fuzz(func(t *testing.T, maps []byte) {
		found, err := mappedPerfData(bytes.NewReader(maps), Process{PID: 42})
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(found), maxMapped)
		for _, name := range found {
			require.True(t, strings.HasPrefix(name, "hsperfdata_") && strings.HasSuffix(name, "/42"), name)
			require.Equal(t, 1, strings.Count(name, "/"), name)
		}
	})
}
