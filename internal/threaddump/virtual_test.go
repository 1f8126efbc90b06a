package threaddump

import (
	"bufio"
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

func TestScheduler(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       *model.VirtualScheduler
	}{
		{"all carriers taken (Temurin 25)", "5065:\njava.util.concurrent.ForkJoinPool@6d315cd6[Running, parallelism = 2, size = 2, active = 2, running = 0, steals = 2, tasks = 3, submissions = 15]\n", &model.VirtualScheduler{Parallelism: 2, Carriers: 2, Mounted: 2, Queued: 18}},
		{"all wait (Temurin 25)", "java.util.concurrent.ForkJoinPool@70177b6e[Running, parallelism = 2, size = 2, active = 0, running = 0, steals = 20, tasks = 0, submissions = 0, delayed = 20]\n", &model.VirtualScheduler{Parallelism: 2, Carriers: 2}},
		{"JDK 21 knows no such command", "java.lang.IllegalArgumentException: Unknown diagnostic command\n", nil},
		{"a number that is none", "java.util.concurrent.ForkJoinPool@1[Running, parallelism = -1, size = 2, active = 2, tasks = 0, submissions = 0]\n", nil},
		{"nothing", "", nil},
		{"endless", strings.Repeat("x", 1<<20), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseScheduler(bufio.NewReader(strings.NewReader(tt.text)))
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want == nil, err != nil)
		})
	}
}
