package hostproc

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsDescriptors(t *testing.T) {
	empty := t.TempDir() + "/fd"
	require.NoError(t, os.WriteFile(empty, nil, 0o600)) // of size 0, as fd is before 6.2
	require.False(t, countsDescriptors(empty))
	require.False(t, countsDescriptors(t.TempDir()+"/nothing"))
	require.Equal(t, kernelAtLeast(t, 6, 2), countsDescriptors("/proc/self/fd"))
}

func kernelAtLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	release, err := realProc(t).KernelRelease()
	require.NoError(t, err)
	parts := strings.SplitN(release, ".", 3)
	require.GreaterOrEqual(t, len(parts), 2, release)
	a, err := strconv.Atoi(parts[0])
	require.NoError(t, err)
	b, err := strconv.Atoi(parts[1])
	require.NoError(t, err)
	return a > major || a == major && b >= minor
}
