package reader

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// javas are the JVMs to run servers with.
func javas(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, name := range []string{
		os.Getenv("TCPDIAG_JAVA8"), "/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "/usr/lib/jvm/temurin-25-jdk-amd64/bin/java",
	} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		path, err := exec.LookPath("java")
		require.NoError(t, err)
		found = append(found, path)
	}
	return found
}

// eight returns the Java 8 that TCPDIAG_JAVA8 names, which Tomcat 10.1 and later do
// not run on.
func eight(java string) bool { return java == os.Getenv("TCPDIAG_JAVA8") }

func label(java string) string {
	if eight(java) {
		return "java-8"
	}
	return filepath.Base(filepath.Dir(filepath.Dir(java)))
}

// TestServer: without any configuration read and without a walk of its connections.
func TestServer(t *testing.T) {
	needServers(t)
	proveServers(t, "10.1.59", javas(t)[:1])
}

// TestLongServers: each line of Tomcat on each JVM.
func TestLongServers(t *testing.T) {
	needServers(t)
	for _, version := range []string{"8.5.100", "9.0.117", "10.1.59", "11.0.24"} {
		proveServers(t, version, javas(t))
	}
}

func proveServers(t *testing.T, version string, javas []string) {
	for _, java := range javas {
		if eight(java) && version[0] == '1' {
			continue
		}
		t.Run(version+" "+label(java), func(t *testing.T) {
			s := start(t, java, version, nil)
			for name, connector := range map[string]int{"plain": plain, "cut": cut, "TLS": tlsConn, "HTTP2": h2} {
				t.Run(name, func(t *testing.T) { s.provesConnector(t, connector) })
			}
			t.Run("NIO2", s.provesNIO2)
		})
	}
}

func (s *server) provesConnector(t *testing.T, connector int) {
	r := s.open(t, connector)
	s.settles(t, connector, r, model.CauseSlowAccept, evidence.StrengthAcceptor) // taking connections

	leave := s.connect(t, connector, maxConnections+acceptCount)
	s.settles(t, connector, r, model.CauseMaxConnections, evidence.StrengthAcceptor)
	require.Positive(t, s.queued(t, connector))
	leave()
	s.settles(t, connector, r, model.CauseSlowAccept, evidence.StrengthAcceptor)

	s.provesFiles(t, connector, r)
	s.provesPaused(t, connector, r)

	require.NoError(t, syscall.Kill(s.pid, syscall.SIGSTOP))
	s.settles(t, connector, r, model.CauseJVMPause, evidence.StrengthProcess)
	require.NoError(t, syscall.Kill(s.pid, syscall.SIGCONT))
	s.settles(t, connector, r, model.CauseSlowAccept, evidence.StrengthAcceptor)
}

// provesFiles: no descriptor is left for accept(). RLIMIT_NOFILE is compared with
// the number of the next descriptor, and 0 to 2 are always in use: nothing that the
// server closes meanwhile makes room.
func (s *server) provesFiles(t *testing.T, connector int, r *Reader) {
	var before unix.Rlimit
	require.NoError(t, unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, nil, &before))
	restore := func() error { return unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &before, nil) }
	defer func() { _ = restore() }()
	// The acceptor in accept() has reserved the descriptor of its next connection.
	require.NoError(t, unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil))
	leave := s.connect(t, connector, 2)
	s.settles(t, connector, r, model.CauseOpenFiles, evidence.StrengthFiles)
	require.NoError(t, restore())
	leave()
	s.settles(t, connector, r, model.CauseSlowAccept, evidence.StrengthAcceptor)
}

// provesPaused: a paused connector is not at its limit; why is said.
func (s *server) provesPaused(t *testing.T, connector int, r *Reader) {
	port := fmt.Sprint(s.ports[connector])
	s.ask(t, "op=pause&port="+port)
	s.settles(t, connector, r, model.CauseAcceptQueue, evidence.StrengthNone)
	asleep := evidence.Missing{
		Subject: evidence.SubjectAcceptor, Why: "it sleeps for a set time, and open files are below their limit: the connector is paused",
	}
	require.Eventually(t, func() bool { // it wakes for a moment a hundred times a second
		return slices.Contains(judged(evidence.Phases{}, r.Read()).Missing, asleep)
	}, time.Minute, time.Millisecond)
	s.ask(t, "op=resume&port="+port)
	s.settles(t, connector, r, model.CauseSlowAccept, evidence.StrengthAcceptor)
}

// provesNIO2: nothing is claimed from threads, and the count speaks.
func (s *server) provesNIO2(t *testing.T) {
	r := s.open(t, nio2)
	leave := s.connect(t, nio2, maxConnections+acceptCount)
	defer leave()
	j := s.settles(t, nio2, r, model.CauseAcceptQueue, evidence.StrengthNone)
	require.Contains(t, j.Missing, evidence.Missing{Subject: evidence.SubjectAcceptor, Why: "NIO2 has no acceptor thread"})
	walked := evidence.Phases{Walked: true, SlotsInUse: maxConnections, MaxConnections: evidence.Known(maxConnections)}
	j = judged(walked, r.Read(), r.Read())
	require.Equal(t, model.CauseMaxConnections, j.Cause)
	require.Equal(t, evidence.StrengthPhases, j.Strength)
}

// judged is what the last of some readings shows.
func judged(phases evidence.Phases, readings ...evidence.Reading) (j evidence.Judgement) {
	var track evidence.Track
	for _, r := range readings {
		j = track.Judge(r, phases, causes.OfMoment)
	}
	return j
}

// settles reads until two judgements in a row name the cause.
func (s *server) settles(t *testing.T, connector int, r *Reader, cause model.Cause, strength evidence.Strength) (j evidence.Judgement) {
	t.Helper()
	var track evidence.Track
	var last evidence.Reading
	for in, end := 0, time.Now().Add(time.Minute); ; {
		last = r.Read()
		last.Queued = evidence.Known(s.queued(t, connector))
		j = track.Judge(last, evidence.Phases{}, causes.OfMoment)
		if in++; j.Cause != cause || j.Strength != strength || j.Pending || j.Weak {
			in = 0
		}
		if in == 2 {
			return j
		}
		require.True(t, time.Now().Before(end), "wanted %s by %s, have %+v of %+v\n%s", cause, strength, j, last, tail{s.log})
		time.Sleep(evidence.MinApart)
	}
}
