package e2e

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// viewers are the rows of the table.
func viewers() []viewer {
	const nobody = "65534"
	ptrace, dac, admin, setuid, setgid := "sys_ptrace", "dac_read_search", "sys_admin", "setuid", "setgid"
	return []viewer{
		{name: "its uid and gid", uid: appID, gid: appID},
		{name: "its uid, another gid", uid: appID, gid: nobody},
		{name: "another user", uid: nobody, gid: nobody},
		{name: "another user, PTRACE", uid: nobody, gid: nobody, caps: []string{ptrace}},
		{name: "another user, PTRACE + DAC", uid: nobody, gid: nobody, caps: []string{ptrace, dac}},
		{name: "another user, PTRACE + DAC + IDS", uid: nobody, gid: nobody, caps: []string{ptrace, dac, setuid, setgid}},
		{name: "another user, all of them", uid: nobody, gid: nobody, caps: []string{ptrace, dac, setuid, setgid, admin}},
		{name: "root without capabilities"},
		{name: "root, PTRACE", caps: []string{ptrace}},
		{name: "root, PTRACE + DAC", caps: []string{ptrace, dac}},
		{name: "root, PTRACE + DAC + IDS", caps: []string{ptrace, dac, setuid, setgid}},
		{name: "root, ADMIN", caps: []string{admin}},
		{name: "root, PTRACE + ADMIN", caps: []string{ptrace, admin}},
		{name: "root, PTRACE + ADMIN + IDS", caps: []string{ptrace, admin, setuid, setgid}},
		{name: "root, all of them", caps: []string{ptrace, dac, setuid, setgid, admin}},
		{name: "root", all: true},
		{name: "its ids, own pid namespace", uid: appID, gid: appID, alone: true},
		{name: "another user, hidepid=2", uid: nobody, gid: nobody, hidepid: true},
	}
}

// scene is a server of which everything that the table shows is known: ten
// connections accepted, of which six were reset by their clients; four left,
// two served and two waiting; four queued, which is one more than the backlog
// of 3; and SYNs that are dropped all the time.
type scene struct{ *rig.Tomcat }

const (
	envConnections = 10 // from the environment
	cwdThreads     = 4  // from application.yml in the working directory
	pathAccept     = 3  // from a file that the command line names
)

func privilegeScene(t *testing.T) *scene {
	t.Helper()
	a := artifacts(t)
	namedApp(t)
	dir := appDir(t)
	write(t, filepath.Join(dir, "cwd/application.yml"), "server.tomcat.threads.max: "+strconv.Itoa(cwdThreads)+"\n")
	extra := write(t, filepath.Join(dir, "etc/limits.yml"), "server.tomcat.accept-count: "+strconv.Itoa(pathAccept)+"\n")
	server := tomcat(t, fourDigits(), rig.Limits{}, func(o *rig.TomcatOptions) {
		o.Artifacts = a
		o.Dir, o.Wrap = filepath.Join(dir, "cwd"), asApp()
		o.Env = []string{"SERVER_TOMCAT_MAX_CONNECTIONS=" + strconv.Itoa(envConnections)}
		// Who cannot read the environment is to find the connector all the same.
		o.Args = []string{
			"--spring.config.additional-location=file:" + extra,
			"--server.port=" + strconv.Itoa(o.Port), "--management.server.port=" + strconv.Itoa(o.ManagementPort),
		}
	})
	s := &scene{Tomcat: server}
	s.fill(t)
	return s
}

// files are those that the server has open.
func (s *scene) files(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(s.PID) + "/fd")
	require.NoError(t, err)
	return len(fds)
}

// fill brings the connections about, and the SYNs.
func (s *scene) fill(t *testing.T) {
	t.Helper()
	warm(t, s.Tomcat)
	to := netip.MustParseAddrPort(s.Address())
	serve := request(t, to, 4)
	nettest.Within(t, time.Minute, "four are served", func() bool { return truth(t, s.Tomcat).Busy == 4 })
	wait := request(t, to, 6)
	nettest.Within(t, time.Minute, "ten are inside", func() bool { return truth(t, s.Tomcat).Connections == 10 })
	reset(t, append(serve[:2:2], wait[:4]...)...)
	nettest.Queue(t, to, pathAccept+1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			nettest.Overflow(t, to, 1)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// request opens n connections, each with a request that takes longer than any
// test.
func request(t *testing.T, to netip.AddrPort, n int) []net.Conn {
	t.Helper()
	conns := nettest.Queue(t, to, n)
	for _, c := range conns {
		_, err := c.Write([]byte("GET " + hello(5*time.Minute) + " HTTP/1.1\r\nHost: a\r\n\r\n"))
		require.NoError(t, err)
	}
	return conns
}

// reset ends connections with an RST.
func reset(t *testing.T, conns ...net.Conn) {
	t.Helper()
	for _, c := range conns {
		require.NoError(t, c.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
	}
}

// looks are two snapshots by a viewer, one of them from elsewhere; taken again while
// the machine is too busy for them. Who cannot read the JVM's safepoints must see its
// acceptor asleep for a second before its cause is named, which a snapshot waits for;
// who cannot read its system calls either, for two: also a late snapshot has seen less.
func (s *scene) looks(t *testing.T, v viewer, elsewhere string) (here *rig.Document, out []byte, errs string, code int) {
	t.Helper()
	for range 10 {
		first := v.sees(t, "--port", strconv.Itoa(s.Port), "--interval", "1500ms")
		second := v.in(elsewhere).runs(t, "--pid", strconv.Itoa(s.PID), "--interval", "1500ms")
		here = first()
		out, errs, code = second()
		there, err := rig.Decode(out)
		if !s.starved(t, here) && (code != 0 || err == nil && !s.starved(t, there)) {
			break
		}
	}
	return here, out, errs, code
}

// The table of docs/privileges.md is what the kernel let each of them see.
func TestLongPrivilege(t *testing.T) {
	if own, err := os.Stat("/proc/self/fd"); err == nil && own.Size() == 0 {
		t.Skip("the table is that of Linux 6.2 and newer, where anybody may count a process's files")
	}
	elsewhere := nettest.Namespace(t) // first: its thread ends, and with it what the thread has started
	s := privilegeScene(t)
	var rows []row
	for _, v := range viewers() {
		files, before := s.files(t), counters(t)["ListenDrops"]
		here, out, errs, code := s.looks(t, v, elsewhere.Path())
		d := observed{Document: here}
		d.dropped, d.files = counters(t)["ListenDrops"]-before, []int{files, s.files(t)}
		marks := s.marks(t, v, d)
		rows = append(rows, row{who: v.name, marks: append(marks, s.fromElsewhere(t, v, d, marks, out, errs, code))})
	}
	text := privilegeTable(rows)
	t.Log("\n" + text)
	requireInPage(t, text)
}
