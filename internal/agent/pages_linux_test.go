package agent

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

const smaps = `00400000-00bb4000 r-xp 00000000 00:21 5 /usr/bin/tcpdiag
Size:               7888 kB
Rss:                7888 kB
Anonymous:             0 kB
00bb4000-01489000 r--p 007b4000 00:21 5 /usr/bin/tcpdiag
Rss:                9044 kB
Anonymous:             4 kB
01489000-014fc000 rw-p 01089000 00:21 5 /usr/bin/tcpdiag
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 00:21 6 /usr/lib/other
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:          4096 kB
`

// TestUnchanged: a page that was changed, or can be, is not given back.
func TestUnchanged(t *testing.T) {
	require.Equal(t, []mapping{{0x400000, 0xbb4000}}, unchanged([]byte(smaps), "/usr/bin/tcpdiag"))
	require.Empty(t, unchanged([]byte("Anonymous: 0 kB\n"), "/usr/bin/tcpdiag"))
}

// TestReleasePages: the program runs on.
func TestReleasePages(t *testing.T) {
	content, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	program, err := os.Readlink("/proc/self/exe")
	require.NoError(t, err)
	require.NotEmpty(t, unchanged(content, program))
	for range 100 {
		require.NoError(t, releasePages())
	}
}
