package hostproc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func auxvOf(uid, euid uint64) string {
	var vector []byte
	for _, word := range []uint64{auxUID, uid, auxEUID, euid, auxGID, 7, auxEGID, 7, 0, 0} {
		vector = binary.NativeEndian.AppendUint64(vector, word)
	}
	return string(vector)
}

func statusOf(uid, euid uint32, groups string) string {
	return fmt.Sprintf("Name:\tjava\nUid:\t%d\t%d\t%d\t%d\nGid:\t7\t7\t7\t7\nGroups:\t%s \nNStgid:\t7\n", uid, euid, euid, euid, groups)
}

// A process may become another user's while its files are opened: its id and start
// time stay (execve(2) of a set-user-ID program). The auxiliary vector is a pipe
// here, so that the test holds the reader in between.
func TestProcessThatChangesItsRights(t *testing.T) {
	const stat = "7 (java) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 42 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
	for name, tt := range map[string]struct {
		then, thenAux string
		refused       bool
	}{
		"nothing changes":            {statusOf(1000, 1000, "4 5"), auxvOf(1000, 1000), false},
		"a set-user-ID program":      {statusOf(1000, 0, "4 5"), auxvOf(1000, 0), true},
		"which has become its owner": {statusOf(0, 0, "4 5"), auxvOf(1000, 0), true},
		"another user without trace": {statusOf(0, 0, "4 5"), auxvOf(0, 0), true},
		"other groups":               {statusOf(1000, 1000, "0"), auxvOf(1000, 1000), true},
	} {
		t.Run(name, func(t *testing.T) {
			mount := proctest.Fake(t, map[string]string{
				"7/stat": stat, "7/status": statusOf(1000, 1000, "4 5"), "7/environ": "A=b\x00", "7/cmdline": "java\x00", "7/mountinfo": "", "7/maps": "",
			})
			for _, link := range []string{"root", "cwd"} {
				require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(mount, "7", link)))
			}
			auxv, status := filepath.Join(mount, "7", "auxv"), filepath.Join(mount, "7", "status")
			require.NoError(t, syscall.Mkfifo(auxv, 0o600))
			fs, err := NewFS(mount)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				pipe, err := os.OpenFile(auxv, os.O_WRONLY, 0) // once the other end is opened, status was read
				later := filepath.Join(mount, "later")
				err = errors.Join(err, os.WriteFile(later, []byte(tt.thenAux), 0o600), os.Rename(later, auxv), os.WriteFile(status, []byte(tt.then), 0o600))
				_, writeErr := pipe.WriteString(auxvOf(1000, 1000))
				done <- errors.Join(err, writeErr, pipe.Close())
			}()
			h, err := fs.Handles(7, 42)
			require.NoError(t, <-done)
			require.NoError(t, err)
			defer h.Close()
			for _, handle := range []Handle{h.Root, h.Cwd, h.environ} {
				require.Equal(t, tt.refused, errors.Is(handle.Err, ErrSetID), handle.Err)
				require.Equal(t, tt.refused, handle.File == nil)
			}
		})
	}
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
