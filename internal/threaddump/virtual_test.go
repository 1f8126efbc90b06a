package threaddump

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func virtualGroups(t testing.TB, text string) model.Stacks {
	t.Helper()
	g := newGroups()
	cut, err := parseVirtual(strings.NewReader(text), g.add)
	require.NoError(t, err)
	g.stacks.Cut = cut
	return g.result()
}

// A file that a JVM wrote (jcmd Thread.dump_to_file), of which the platform threads are
// left out.
func TestVirtualThreadsOfAFile(t *testing.T) {
	text, err := os.ReadFile("testdata/file-25.virtual")
	require.NoError(t, err)
	s := virtualGroups(t, string(text))
	require.Equal(t, 4, s.Threads)
	require.Equal(t, 4, s.Virtual)
	require.Equal(t, 3, s.Workers)
	require.False(t, s.Cut)
	busy := s.BusyGroup()
	require.Equal(t, 3, busy.Threads)
	require.Equal(t, "TIMED_WAITING", busy.State)
	require.Equal(t, "V.query", busy.Application)

	// JDK 21 writes neither state nor "at".
	s = virtualGroups(t, "7\n2026-01-01T00:00:00Z\n21.0.8+9-LTS\n\n#1 \"main\"\n      java.base/java.lang.Thread.run(Thread.java:1583)\n\n"+
		"#22 \"http-nio-8080-virt-0\" virtual\n      java.base/java.lang.VirtualThread.park(VirtualThread.java:582)\n      com.acme.Orders.find(Orders.java:7)\n")
	require.Equal(t, 1, s.Threads)
	require.Equal(t, 1, s.Workers)
	require.Equal(t, "com.acme.Orders.find", s.Groups[0].Application)
	require.Empty(t, s.Groups[0].State)

	crowd := virtualGroups(t, strings.Repeat("#22 \"\" virtual\n      com.acme.App.run(App.java:1)\n\n", maxThreads+1))
	require.True(t, crowd.Cut)
	require.Equal(t, maxThreads, crowd.Threads)
}

// Virtual threads that ran are in both answers, and counted once.
func TestVirtualThreadsAreCountedOnce(t *testing.T) {
	text, err := os.ReadFile("testdata/virtual-25.txt")
	require.NoError(t, err)
	both := grouped(t, string(text))
	both.Deadlocked = false
	require.Positive(t, both.Virtual)

	g := platformGroups()
	_, err = parse(strings.NewReader(string(text)), g.add)
	require.NoError(t, err)
	require.True(t, g.virtual)
	g.merge(g.mounted)
	require.Equal(t, both, g.result(), "where the JVM does not write down all")
}

func FuzzParseVirtual(f *testing.F) {
	text, err := os.ReadFile("testdata/file-25.virtual")
	require.NoError(f, err)
	f.Add(string(text))
	f.Add("#22 \"a\" virtual\n      com.acme.\x1b[31mRed.run(A:1)\n  - locked <x>\n#\n#\"\n\" virtual")
	f.Fuzz(func(t *testing.T, text string) {
		s := virtualGroups(t, text)
		require.Equal(t, s.Threads, s.Virtual)
		for _, g := range s.Groups {
			for _, m := range append(g.Frames, g.Library, g.Application) {
				require.Equal(t, model.Printable(m), m)
			}
		}
	})
}
