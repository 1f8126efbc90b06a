package threaddump

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
)

// jvm is a process that may be asked.
type jvm struct {
	proc hostproc.FS
	key  hostproc.ProcessKey
	seen hostproc.Process
	// owner is whose it is: the own user's, or in a container root's as well.
	owner string
}

// find refuses every process but a running HotSpot JVM of the own user and group.
func find(proc hostproc.FS, key hostproc.ProcessKey) (*jvm, error) {
	if !proc.SamePIDs() {
		return nil, refuse("the process ids that are seen are another pid namespace's").
			but("run in a pid namespace whose /proc is mounted")
	}
	j := &jvm{proc: proc, key: key}
	var err error
	if j.seen, err = j.same(); err != nil {
		return nil, err
	}
	j.owner = cgroup.Owner(proc, key.PID)
	vm, err := hsperf.VirtualMachineOf(proc, j.owner, key.PID)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, refuse("its memory mappings may not be read, by which a HotSpot JVM is recognised")
	case err != nil:
		return nil, refuse("%v", err)
	case vm == hsperf.OpenJ9:
		return nil, refuse("it is an OpenJ9 JVM: only HotSpot is asked").but("jcmd PID Thread.print of its own JDK")
	case vm != hsperf.HotSpot:
		return nil, refuse("it is no HotSpot JVM: it has no libjvm.so mapped (a native image, or no Java)")
	}
	return j, nil
}

// same reads the process, and refuses one that has become another, does not run, or
// has other ids than this one. Ids are never changed for it: root is refused, too.
func (j *jvm) same() (hostproc.Process, error) {
	p, err := j.proc.Process(j.key.PID)
	switch {
	case err != nil:
		return p, refuse("%v", err)
	case p.StartTime != j.key.StartTime:
		return p, refuse("another process has its id by now")
	case p.Exited():
		return p, refuse("it has ended")
	case p.Stopped():
		return p, refuse("it is stopped (SIGSTOP or a debugger)").but("let it go on: kill -CONT %d", p.PID)
	}
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	for i := range p.UIDs {
		if p.UIDs[i] != uid || p.GIDs[i] != gid {
			return p, refuse("it runs as uid %d and gid %d, tcpdiag as uid %d and gid %d: a JVM answers its own user only, and ids are never changed for this", p.UIDs[1], p.GIDs[1], uid, gid).
				but("run tcpdiag as uid %d and gid %d", p.UIDs[1], p.GIDs[1])
		}
	}
	return p, nil
}

// vmThreads are those of the JVM's own by which it shows that it takes SIGQUIT. Their
// names are the same from JDK 8 to 25.
type vmThreads struct {
	vm         int // the only thread that does not block SIGQUIT (PosixSignals::hotspot_sigmask)
	dispatcher bool
	service    bool // made after AttachListener::vm_start, which removes a socket of a JVM before
	listener   bool // the socket is there, or about to be
}

func (j *jvm) threads() (t vmThreads, err error) {
	err = j.proc.ThreadNames(j.key.PID, func(tid int, comm string) {
		switch comm {
		case "VM Thread":
			t.vm = tid
		case "Signal Dispatch": // of "Signal Dispatcher" the kernel keeps 15 characters
			t.dispatcher = true
		case "Service Thread":
			t.service = true
		case "Attach Listener":
			t.listener = true
		}
	})
	return t, err
}

// attachDisabled: such a JVM takes SIGQUIT, and writes the thread dump to its own output.
func (j *jvm) attachDisabled() bool {
	const flag = "-XX:+DisableAttachMechanism"
	if info, err := hsperf.Read(j.proc, j.key.PID); err == nil {
		return strings.Contains(info.VMArgs, flag)
	}
	args, err := j.proc.Cmdline(j.owner, j.key.PID)
	return err != nil || strings.Contains(strings.Join(args, " "), flag)
}
