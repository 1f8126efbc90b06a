package cli

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The same program with the same SOURCE_DATE_EPOCH writes the same bytes,
// whatever the time zone.
func TestManIsReproducible(t *testing.T) {
	in := func(zone string) map[string]string {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "man", dir)
		cmd.Env = append(os.Environ(), mainVariable+"=1", "SOURCE_DATE_EPOCH=1701381600", "TZ="+zone) // 2023-11-30T22:00:00Z
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return filesOf(t, dir)
	}
	once := in("UTC")
	require.Contains(t, once["tcpdiag.1"], "Nov 2023")
	require.Equal(t, once, in("Asia/Tokyo"))
}
