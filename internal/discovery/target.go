package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// target is what is known of a process before it is told what it is.
type target struct {
	pid     int
	known   bool      // the command line could be read
	comm    string    // of the executable, whatever argv[0] says
	started time.Time // zero when unknown
	args    []string
	env     map[string]string // nil when it could not be read
	jvm     *hostproc.JVM     // nil when there is none, or it could not be read
	files   *files
	missing []model.Unavailable
	// hidden is set when something could not be read that may set limits.
	hidden bool
}

// look reads what the process was started with. Whatever cannot be read is
// named and done without.
func look(proc hostproc.FS, pid int) *target {
	t := &target{pid: pid, files: newFiles(proc.Root(pid), proc.Cwd(pid))}
	how := remedy(proc, pid)
	if p, err := proc.Process(pid); err == nil {
		t.comm = p.Comm
	}
	var err error
	if t.args, err = proc.Cmdline(pid); err != nil {
		t.miss("command line", err, how)
	}
	t.known = err == nil
	if !t.isJava() {
		return t
	}
	t.started = startOf(proc, pid)
	environ, err := proc.Environ(pid)
	if err != nil {
		t.miss("environ", err, how)
	} else {
		t.env = variables(environ)
	}
	if _, err := os.Readlink(t.files.root); err != nil {
		if sharesRoot(path.Dir(t.files.root)) {
			t.files.root = "/" // what anybody may read, we may
		} else {
			t.miss("files (root)", err, how)
		}
	}
	if _, err := os.Readlink(t.files.cwd); err != nil {
		t.miss("working directory", err, how)
	}
	t.lookAtJVM(proc, how)
	return t
}

func (t *target) lookAtJVM(proc hostproc.FS, how string) {
	jvm, err := proc.JVM(t.pid)
	switch {
	case err == nil:
		t.jvm = &jvm
	case errors.Is(err, fs.ErrPermission) && !t.hidden: // said once is enough
		t.miss("JVM arguments (hsperfdata)", err, how)
	}
}

// forget drops what only the first look needs, secrets in it too.
func (t *target) forget() { t.args, t.env, t.jvm = nil, nil, nil }

// isJava goes by the command: java, or jsvc.exec of commons-daemon.
func (t *target) isJava() bool {
	if len(t.args) == 0 {
		return false
	}
	if t.comm == "java" {
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

// remedy says who may read a process's environment, folders and files
// (PTRACE_MODE_READ: all ids equal, or CAP_SYS_PTRACE; and environ and fd are the
// owner's alone to open, or CAP_DAC_READ_SEARCH's).
func remedy(proc hostproc.FS, pid int) string {
	p, err := proc.Process(pid)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("run as uid %d and gid %d, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", p.UIDs[0], p.GIDs[0])
}

// startOf is when a process was started, by today's clock.
func startOf(proc hostproc.FS, pid int) time.Time {
	p, err := proc.Process(pid)
	if err != nil {
		return time.Time{}
	}
	boot, err := proc.BootTime()
	if err != nil {
		return time.Time{}
	}
	return boot.Add(time.Duration(p.StartTime) * (time.Second / hostproc.UserHZ))
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
