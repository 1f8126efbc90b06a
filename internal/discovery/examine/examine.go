// Package examine finds out what a process is and what its configuration says: a Tomcat of
// its own, a Spring Boot application, another JVM, or something else. What strangers wrote
// is read in a child process (Children, Serve) that has given up everything before; its
// answer crosses back as bounded, checked JSON.
package examine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// examine finds out what the process is. It reads what the process wrote and
// named, and may never come back.
func (s *subject) examine() (*Examination, error) {
	t := observe(s)
	defer t.files.close()
	f := identify(t)
	doubtLate(f, t)
	if !s.handles.Same() {
		return nil, fmt.Errorf("discovery: pid %d: %w", t.pid, hostproc.ErrNoProcess)
	}
	return &Examination{Known: t.known, pid: t.pid, Found: *f, Missing: t.missing, files: t.files.stamps(), Numbers: numbersIn(t.args)}, nil
}

// Here examines in this very process: for tests. The product starts a process
// that gives up everything first; see Children.
type Here struct{ Proc hostproc.FS }

// Examine reads what the process wrote and named.
func (h Here) Examine(_ context.Context, r Request) (*Examination, PerfData, error) {
	s, err := newSubject(h.Proc, r)
	if err != nil {
		return nil, PerfData{}, err
	}
	defer s.handles.Close()
	s.everyone = !sameUser(s.handles.Process)
	s.openJVM()
	data := PerfData{Err: s.jvmErr}
	if s.jvm != nil {
		data.File = s.jvm.File()
	}
	e, err := s.examine()
	return e, data, err
}

// sameUser says that we have a process's user and group.
func sameUser(p hostproc.Process) bool {
	return p.UIDs[3] == uint32(os.Geteuid()) && p.GIDs[3] == uint32(os.Getegid())
}

// identify says what a process is.
func identify(t *target) *match.Found {
	f := identifyServer(t)
	f.JVMPorts = jvmPorts(slices.Concat(t.args, strings.Fields(t.vmArgs())))
	return f
}

func identifyServer(t *target) *match.Found {
	if options, arguments, ok := bootstrap(t.args); ok {
		return standalone(t, options, arguments)
	}
	if arguments, ok := t.bootstrapped(); ok {
		return standalone(t, t.args[1:], arguments)
	}
	if !t.isJava() {
		return &match.Found{Server: model.ServerOther().Name}
	}
	if f := boot(t); f != nil {
		return f
	}
	return &match.Found{Server: model.ServerJVM().Name}
}

// standalone reads a Tomcat of its own.
func standalone(t *target, options, arguments []string) *match.Found {
	server, err := catalina.Load(t.catalina(options, arguments))
	f := &match.Found{
		Server:      model.ServerJVM().Name, // its shutdown port, JMX, a debugger
		Connectors:  server.Connectors,
		Version:     server.Version,
		Unavailable: server.Unavailable,
	}
	if err != nil {
		f.Unavailable = append(f.Unavailable, model.Unavailable{What: server.File, Why: err.Error(), How: match.ByHand})
	}
	return f
}
