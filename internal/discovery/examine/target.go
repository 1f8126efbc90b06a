package examine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// target is what is known of a process before its server is identified.
type target struct {
	pid     int
	known   bool      // the command line could be read
	comm    string    // of the executable, whatever argv[0] says
	started time.Time // zero when unknown
	args    []string
	env     map[string]string // nil when it could not be read
	jvm     *hsperf.JVM       // nil when there is none, or it could not be read
	files   *files
	missing []model.Unavailable
	// hidden is set when something could not be read that may set limits.
	hidden bool
}

// observe reads what the process was started with. Whatever cannot be read is
// named and done without.
func observe(s *subject) *target {
	h := s.handles
	t := &target{pid: h.Process.PID, comm: h.Process.Comm, files: s.files()}
	var err error
	if t.args, err = h.Words(); err != nil {
		t.miss("command line", err, s.how)
	}
	t.known = err == nil
	if !t.isJava() {
		return t
	}
	t.started = s.started
	environ, err := h.Environ()
	if err != nil {
		t.miss("environ", err, s.how)
	} else {
		t.env = variables(environ)
	}
	if err := t.files.root.err; err != nil {
		t.miss("files (root)", err, s.how)
	} else if s.everyone {
		t.miss("files that not every user may read", errNotItsUser, s.how)
	}
	if err := t.files.cwd.err; err != nil {
		t.miss("working directory", err, s.how)
	}
	t.observeJVM(s)
	return t
}

func (t *target) observeJVM(s *subject) {
	if t.files.root.err != nil {
		return // said already
	}
	s.openJVM()
	err := s.jvmErr
	if err == nil {
		var jvm hsperf.JVM
		if jvm, err = s.jvm.Read(); err == nil {
			t.jvm = &jvm
		}
	}
	if errors.Is(err, fs.ErrPermission) && !t.hidden { // said once is enough
		t.miss("JVM arguments (hsperfdata)", err, s.how)
	}
}

// isJava goes by the command: java, or jsvc.exec of commons-daemon.
func (t *target) isJava() bool {
	if len(t.args) == 0 {
		return false
	}
	if model.IsJVM(t.comm) {
		return true
	}
	name := path.Base(t.args[0])
	return strings.HasPrefix(name, "java") || strings.HasPrefix(name, "jsvc")
}

func (t *target) vmArgs() string {
	if t.jvm == nil {
		return ""
	}
	return t.jvm.VMArgs
}

func (t *target) miss(what string, err error, how string) {
	t.hidden = t.hidden || errors.Is(err, fs.ErrPermission)
	why := err.Error()
	if errors.Is(err, fs.ErrPermission) {
		why = "permission denied"
	}
	t.missing = append(t.missing, model.Unavailable{What: fmt.Sprintf("%s of pid %d", what, t.pid), Why: why, How: how})
}

// variables are "NAME=value" words; of two with one name the first counts.
func variables(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, word := range environ {
		name, value, _ := strings.Cut(word, "=")
		if _, known := env[name]; !known {
			env[name] = value
		}
	}
	return env
}

// catalina is the process as package catalina wants it.
func (t *target) catalina(options, arguments []string) *catalina.Process {
	return &catalina.Process{
		Properties: systemProperties(options, t.env, t.vmArgs()),
		Args:       arguments,
		Env:        t.env,
		Partial:    t.env == nil && !t.allVMArgs(),
		Open:       t.files.Open,
	}
}

// allVMArgs says that the JVM's own list of its options is there, and whole.
func (t *target) allVMArgs() bool { return t.jvm != nil && len(t.jvm.VMArgs) < maxVMArgs }
