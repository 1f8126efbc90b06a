package guest

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// tcpdiag is where the image has the program.
const tcpdiag = "/bin/tcpdiag"

// inGuest skips the test outside of a guest, which alone may be changed so.
func inGuest(t *testing.T) {
	t.Helper()
	if !nettest.InGuest() {
		t.Skip("only in a guest: make prove PROOF=kernels")
	}
}

// report puts a cell into the table of docs/results/kernels.md.
func report(name, format string, values ...any) { nettest.Feature(name, format, values...) }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func proc(t *testing.T) hostproc.FS {
	t.Helper()
	fs := hostfs.Real(t)
	return fs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func kernelAtLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	release, err := proc(t).KernelRelease()
	require.NoError(t, err)
	var a, b int
	_, err = fmt.Sscanf(release, "%d.%d", &a, &b)
	require.NoError(t, err)
	return a > major || a == major && b >= minor
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// spread are the durations of something that is run a number of times, sorted.
func spread(times int, f func()) []time.Duration {
	all := make([]time.Duration, times)
	for i := range all {
		start := time.Now()
		f()
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all
}

func median(times int, f func()) time.Duration { return spread(times, f)[times/2] }

// ratio is a over b for people.
func ratio(a, b time.Duration) string {
	r := float64(a) / float64(b)
	if r >= 100 {
		return fmt.Sprintf("× %.0f", r)
	}
	return fmt.Sprintf("× %.2g", r)
}
