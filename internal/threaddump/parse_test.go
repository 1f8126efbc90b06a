package threaddump

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

func grouped(t testing.TB, text string) model.Stacks {
	t.Helper()
	g := newGroups()
	end, err := parse(strings.NewReader(text), g.add)
	require.NoError(t, err)
	g.stacks.Deadlocked, g.stacks.Cut = end.deadlocked, end.cut
	return g.result()
}

func lines(s *model.Stacks) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d threads, %d workers, %d carriers, others %d, deadlocked %t, cut %t\n", s.Threads, s.Workers, s.Carriers, s.Others, s.Deadlocked, s.Cut)
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "%d × %s ← %s (%s, worker %t, idle %t)\n", g.Threads, g.Library, g.Application, g.State, g.Worker, g.Idle)
		for _, f := range g.Frames {
			fmt.Fprintf(&b, "\t%s\n", f)
		}
	}
	return b.String()
}

// The dumps were written by the JVMs that their names give the versions of; what is
// made of them is in the files beside them, which UPDATE=1 writes.
func TestRecordedDumps(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			stacks := grouped(t, string(text))
			golden.Equal(t, strings.TrimSuffix(file, ".txt")+".groups", lines(&stacks))
		})
	}
}

func dump(threads ...string) string {
	return strings.Join(threads, "\n\n") + "\n\nJNI global refs: 4\n"
}

func stack(name, state string, frames ...string) string {
	return `"` + name + `" #1 prio=5` + "\n   java.lang.Thread.State: " + state + "\n\tat " + strings.Join(frames, "(X.java:1)\n\t- locked <0x01> (a X)\n\tat ") + "(X.java:2)"
}

// Names, locks and addresses are in no result; frames are equal whatever differs from
// run to run.
func TestOnlyFramesRemain(t *testing.T) {
	s := grouped(t, dump(
		stack("secret=4711", "WAITING (on object monitor)", "java.lang.Object.wait", "com.acme.App$$Lambda/0x00007f11aa.run", "com.acme.App.main"),
		stack("secret=4712", "WAITING (parking)", "java.lang.Object.wait", "com.acme.App$$Lambda/0x00007f11bb.run", "com.acme.App.main"),
		stack("secret=4713", "WAITING", "java.lang.Object.wait", "com.acme.App$$Lambda$14/0x99.run", "com.acme.App.main"),
		stack("secret=4714", "WAITING", "java.lang.Object.wait", "com.acme.App$$Lambda$15/471910020.run", "com.acme.App.main"),
	))
	require.Equal(t, 4, s.Threads)
	require.Len(t, s.Groups, 2, "JDK 8 and 17 number their lambdas, 21 and 25 do not")
	require.NotContains(t, fmt.Sprint(s), "secret")
	require.NotContains(t, fmt.Sprint(s), "0x")
	require.NotContains(t, fmt.Sprint(s), "471910020")
}

func TestControlCharactersAreEscaped(t *testing.T) {
	s := grouped(t, dump(stack("a", "RUNNABLE", "com.acme.\x1b[31mRed.run\u202e", "no method"), stack("b", "A VALUE", "com.acme.App.run")))
	require.Equal(t, 2, s.Threads)
	for _, g := range s.Groups {
		require.Contains(t, []string{"RUNNABLE", ""}, g.State)
		for _, f := range append(g.Frames, g.Application, g.Library) {
			require.NotContains(t, f, "no method")
			require.False(t, strings.ContainsFunc(f, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", f)
		}
	}
}

// A thread of a server, by its name, is one whether it works or not.
func TestWorkers(t *testing.T) {
	for name, want := range map[string]bool{
		"http-nio-8080-exec-1": true, "https-jsse-nio-8443-exec-200": true, "ajp-nio-127.0.0.1-8009-exec-3": true,
		"tomcat-exec-7": true, "catalina-exec-7": true, "tomcat-handler-12": true, "qtp123456-34": true, "XNIO-1 task-3": true,
		"http-nio-8080-Acceptor": false, "http-nio-8080-Poller": false, "main": false, "my-http-nio-8080-exec-1": false, "http-nio-8080-exec-": false, "": false,
	} {
		s := grouped(t, dump(stack(name, "RUNNABLE", "com.acme.App.run")))
		require.Equal(t, want, s.Workers == 1, name)
		require.Equal(t, want, s.BusyGroup() != nil, name)
	}
	idle := grouped(t, dump(stack("http-nio-8080-exec-1", "WAITING", "jdk.internal.misc.Unsafe.park", "org.apache.tomcat.util.threads.TaskQueue.take", "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask", "java.lang.Thread.run")))
	require.Equal(t, 1, idle.Workers)
	require.Nil(t, idle.BusyGroup())
	require.Equal(t, "org.apache.tomcat.util.threads.TaskQueue.take", idle.Groups[0].Library)
}

func TestPlaces(t *testing.T) {
	p := newFrameKinds()
	for _, c := range []struct {
		name                 string
		frames               []string
		library, application string
	}{
		{"a pool", []string{
			"jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.LockSupport.parkNanos", "com.zaxxer.hikari.util.ConcurrentBag.borrow",
			"com.zaxxer.hikari.pool.HikariPool.getConnection", "com.zaxxer.hikari.HikariDataSource.getConnection",
			"org.springframework.jdbc.datasource.DataSourceUtils.fetchConnection", "jdk.proxy2.$Proxy.find", "com.acme.OrderService.order", "com.acme.OrderController.get",
		}, "com.zaxxer.hikari.HikariDataSource.getConnection", "com.acme.OrderService.order"},
		{"a driver", []string{
			"sun.nio.ch.SocketDispatcher.read0", "org.postgresql.core.PGStream.receiveChar", "org.postgresql.jdbc.PgStatement.execute",
			"com.zaxxer.hikari.pool.ProxyStatement.execute", "org.postgresql.Other.method", "com.acme.Orders.find",
		}, "org.postgresql.jdbc.PgStatement.execute", "com.acme.Orders.find"},
		{"the JDK called by the application", []string{"java.lang.Thread.sleep0", "java.lang.Thread.sleep", "com.acme.App.nap", "com.acme.App.run"}, "java.lang.Thread.sleep", "com.acme.App.nap"},
		{"the application itself", []string{"com.acme.App.compute", "com.acme.App.run"}, "com.acme.App.compute", "com.acme.App.compute"},
		{"a proxy of it", []string{"java.lang.Object.wait", "com.acme.App$$SpringCGLIB$$0.find", "com.acme.Caller.call"}, "com.acme.App$$SpringCGLIB$$0.find", "com.acme.Caller.call"},
		{"a compiled page", []string{"java.lang.Object.wait", "org.apache.jsp.index_jsp._jspService"}, "java.lang.Object.wait", "org.apache.jsp.index_jsp._jspService"},
		{"the JDK alone", []string{"java.lang.Object.wait", "java.lang.ref.Finalizer.run"}, "java.lang.Object.wait", ""},
		{"nothing", nil, "", ""},
	} {
		library, application := p.entered(c.frames)
		require.Equal(t, c.library, library, c.name)
		require.Equal(t, c.application, application, c.name)
	}
}

// What is beyond a bound is counted, or said to be cut.
func TestBounds(t *testing.T) {
	var many []string
	for i := range maxGroups + 3 {
		many = append(many, stack("a", "RUNNABLE", fmt.Sprintf("com.acme.App%03d.run", i)))
	}
	s := grouped(t, dump(many...))
	require.Len(t, s.Groups, maxGroups)
	require.Equal(t, 3, s.Others)
	require.Equal(t, maxGroups+3, s.Threads)

	g := newGroups()
	for i := range maxAnswer + 2 {
		g.add(&thread{frames: []string{fmt.Sprintf("com.acme.App%d.run", i)}})
	}
	s = g.result()
	require.Equal(t, maxAnswer+2-maxGroups, s.Others)

	deep := grouped(t, dump(stack("a", "RUNNABLE", strings.Split(strings.Repeat("com.acme.App.deep ", 3000), " ")...)))
	require.Len(t, deep.Groups[0].Frames, maxShown)

	long := grouped(t, dump(stack("a", "RUNNABLE", "com.acme."+strings.Repeat("x", 3*lineLength)+".run", "com.acme.App.run")))
	require.Equal(t, []string{"com.acme.App.run"}, long.Groups[0].Frames)

	crowd := grouped(t, strings.Repeat(stack("a", "RUNNABLE", "com.acme.App.run")+"\n\n", maxThreads+1))
	require.True(t, crowd.Cut)
	require.Equal(t, maxThreads, crowd.Threads)

	endless := grouped(t, strings.Repeat("x", maxBytes+1))
	require.True(t, endless.Cut)
}

// Whatever the answer is: the threads of the groups are all threads, and what is
// kept is bounded and printable.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(dump(stack("a", "RUNNABLE", "com.acme.\x1b[31mRed.run\u202e", "b/c", "/", "$Proxy1.run", "$$Lambda$1/2.x")))
	f.Fuzz(func(t *testing.T, text string) {
		s := grouped(t, text)
		require.LessOrEqual(t, len(s.Groups), maxGroups)
		sum := s.Others
		for _, g := range s.Groups {
			sum += g.Threads
			require.LessOrEqual(t, len(g.Frames), maxShown)
			for _, m := range append(g.Frames, g.Library, g.Application) {
				require.LessOrEqual(t, len(m), model.MaxName+len("…"))
				require.Equal(t, model.Printable(m), m)
			}
		}
		require.Equal(t, s.Threads, sum)
		require.LessOrEqual(t, s.Workers, s.Threads)
	})
}
