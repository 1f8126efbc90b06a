package reader

import (
	"errors"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// read reads what /proc says of a process. What could not be read is named; of
// a process that has ended there is nil.
func (m *processReader) read(proc hostproc.FS, jvm func() (*hsperf.File, error), now time.Time, pid int, miss *facts.Missing) *model.Process {
	st, err := proc.Process(pid)
	if err != nil {
		miss.Process(pid, "status", err)
		return nil
	}
	p := &model.Process{At: now}
	p.PID, p.Comm, p.StartTime = pid, model.Escape(st.Comm), st.StartTime
	p.Threads, p.Stopped, p.Dumping = new(st.Threads), st.Stopped(), st.Dumping
	who := credentials(st)
	p.OpenFiles = m.openFiles(proc, now, pid, who, miss)
	p.OpenFilesLimit = m.filesLimit(proc, now, pid, who, miss)
	if d, err := m.runDelay.Read(now); err == nil {
		p.RunDelay = &d
	}
	m.readJVM(jvm, now, p, who, miss)
	p.CPUUsed = &st.CPUTime
	if st.Used > 0 {
		p.MemoryUsed = &st.Used
	}
	m.readCgroup(proc, p)
	readChildren(proc, p)
	m.users.read(proc, now, st, p)
	return p
}

// mostChildren is how many children of a process are read, and allChildren how many while each of its workers among
// these is stopped: whether all are is to be known. The kernel lists a page of them, which are more than that.
const mostChildren, allChildren = 64, 500

// readChildren reads which worker processes of a server are stopped: of one whose first process only looks after the
// others, its own state shows nothing. What is behind those that are read is counted alone.
func readChildren(proc hostproc.FS, p *model.Process) {
	if model.IsJVM(p.Comm) {
		return
	}
	pids, err := proc.Children(p.PID)
	if err != nil {
		return
	}
	for i, pid := range pids {
		if i >= mostChildren && (p.StoppedChildren == 0 || p.StoppedChildren < p.Children) || i >= allChildren {
			p.ChildrenUnread = len(pids) - i
			break
		}
		st, err := proc.Stat(pid)
		if err != nil || st.Exited || model.Escape(st.Comm) != p.Comm {
			continue
		}
		if p.Children++; st.Stopped {
			if p.StoppedChildren++; p.StoppedChild == 0 {
				p.StoppedChild = pid
			}
		}
	}
}

func (m *processReader) readCgroup(proc hostproc.FS, p *model.Process) {
	cg, err := cgroup.Of(proc, p.PID)
	if err != nil {
		return
	}
	p.Container, p.PodUID = model.Escape(cg.ContainerID), model.Escape(cg.PodUID)
	p.Owner = cg.Owner
	p.Frozen = cg.Frozen
	p.CPULimit, p.MemoryLimit = cg.CPULimit, cg.MemoryLimit
	p.CPUThrottled, p.CPUPeriods, p.CPUPeriodsThrottled = cg.Throttled, cg.NrPeriods, cg.NrThrottled
	if cg.Used != nil {
		p.CPUUsed = cg.Used
	}
	if cg.PidsLimit != nil {
		p.PIDsLimit = new(int(*cg.PidsLimit))
	}
	p.PIDsRefused = m.refusedSince(cg.PidsRefused)
}

// refusedSince is what has been refused since the first reading; a counter that
// went back is another group's.
func (m *processReader) refusedSince(total *uint64) *uint64 {
	if total == nil {
		return nil
	}
	if m.refused == nil || *m.refused > *total {
		m.refused = total
	}
	return new(*total - *m.refused)
}

func credentials(p hostproc.Process) string {
	return fmt.Sprintf("run as uid %d and gid %d, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", p.UIDs[1], p.GIDs[1])
}

// rarely is how often that is read again which hardly ever changes: the
// processes' limits.
const limitsEvery = 10 * time.Second

// files is what is remembered of a process's open files.
type files struct {
	open    *int
	openAt  time.Time
	limit   *int
	limitAt time.Time
}

// cheapFiles are counted at every scan, one by one if it must be.
const cheapFiles = 1000

// due reports whether to count again. atOnce: the kernel has the number.
func (f *files) due(now time.Time, atOnce bool) bool {
	return f.open == nil || atOnce || *f.open < cheapFiles || now.Sub(f.openAt) >= limitsEvery
}

func (m *processReader) openFiles(proc hostproc.FS, now time.Time, pid int, who string, miss *facts.Missing) *int {
	if !m.files.due(now, proc.CountsOpenFiles()) {
		return m.files.open
	}
	m.files.open = nil
	if n, err := openfiles.Count(proc, pid); miss.OK(pid, "open files", who, err) {
		m.files.open, m.files.openAt = &n, now
	}
	return m.files.open
}

// filesLimit is read again every ten seconds only (prlimit(2) may change it).
func (m *processReader) filesLimit(proc hostproc.FS, now time.Time, pid int, who string, miss *facts.Missing) *int {
	if m.files.limit != nil && now.Sub(m.files.limitAt) < limitsEvery {
		return m.files.limit
	}
	m.files.limit = nil
	if n, err := openfiles.Limit(proc, pid); miss.OK(pid, "limits", who, err) {
		m.files.limit, m.files.limitAt = &n, now
	}
	return m.files.limit
}

// processReader is what is kept of a process from scan to scan.
type processReader struct {
	runDelay *threads.RunDelayCounter
	jvm      *hsperf.File
	still    evidence.Standstill
	files    files
	users    *userThreads
	refused  *uint64 // by the pids limit, when it was first read
}

// readJVM reads the JVM's own counters, where it has any that may be read.
func (m *processReader) readJVM(open func() (*hsperf.File, error), now time.Time, p *model.Process, who string, miss *facts.Missing) {
	if !model.IsJVM(p.Comm) {
		return
	}
	if m.jvm == nil {
		jvm, err := open()
		switch {
		case errors.Is(err, discovery.ErrUnexamined):
			return
		case errors.Is(err, hsperf.ErrNoPerfData):
			miss.Add(noPerfData(p.PID))
			return
		case !miss.OK(p.PID, "JVM counters (hsperfdata)", who, err):
			return
		}
		m.jvm = jvm
	}
	if jvm, err := m.jvm.Read(); err == nil {
		p.SafepointTime, p.InSafepoint = m.safepoints(now, &jvm)
		p.GCTime = jvm.GCTime
		p.OldUsed, p.OldMax = jvm.OldUsed, jvm.OldMax
	}
}

// safepoints are the time of those that have ended, and how long the one under way has lasted,
// nil when none is known to be.
func (m *processReader) safepoints(now time.Time, jvm *hsperf.JVM) (stood, under *time.Duration) {
	if jvm.Safepoints == nil || jvm.SafepointTime == nil || jvm.ApplicationTime == nil || jvm.Started == nil {
		return jvm.SafepointTime, nil // an old JVM lacks the counters
	}
	c := evidence.Counters{
		Begun: *jvm.Safepoints, Ran: *jvm.ApplicationTime, Stood: *jvm.SafepointTime, Collecting: jvm.Collecting, Started: *jvm.Started,
	}
	if jvm.SafepointSyncTime != nil {
		c.Synced = *jvm.SafepointSyncTime
	}
	s := m.still.Next(now, c)
	if s.UnderWay {
		under = &s.Lasted
	}
	return &s.Stood, under
}

// noPerfData is what a JVM without counters lacks most often: HotSpot names the
// file after its user and makes none for a uid without a name, which is what
// many containers run as.
func noPerfData(pid int) model.Unavailable {
	return model.Unavailable{
		What: fmt.Sprintf("JVM counters (hsperfdata) of pid %d", pid),
		Why:  "the JVM writes none",
		How:  "give its uid a name in the container's /etc/passwd; no -XX:-UsePerfData, no -XX:+PerfDisableSharedMem",
	}
}

func (m *processReader) close() {
	if m.jvm != nil {
		_ = m.jvm.Close()
	}
}

// Processes read the processes of the watched listeners. They are for one goroutine at a
// time.
type Processes struct {
	proc   hostproc.FS
	jvm    OpenJVM
	now    func() time.Time
	memory map[hostproc.ProcessKey]*processReader
	load   threads.Load
	users  userThreads
	store  *facts.Store
}

// OpenJVM opens the performance data of a process.
type OpenJVM func(hostproc.ProcessKey) (*hsperf.File, error)

// of is the same for one process.
func (open OpenJVM) of(key hostproc.ProcessKey) func() (*hsperf.File, error) {
	return func() (*hsperf.File, error) { return open(key) }
}

// NewProcesses puts what it reads into store.
func NewProcesses(proc hostproc.FS, store *facts.Store, jvm OpenJVM, now func() time.Time) *Processes {
	return &Processes{
		proc: proc, jvm: jvm, now: now,
		memory: make(map[hostproc.ProcessKey]*processReader), store: store,
	}
}

// Read takes another reading of a process, and returns what it cost.
func (ps *Processes) Read(key hostproc.ProcessKey) (cost time.Duration) {
	m := ps.memory[key]
	if m == nil {
		m = &processReader{users: &ps.users, runDelay: threads.NewRunDelayCounter(ps.proc, key.PID, &ps.load)}
		ps.memory[key] = m
	}
	var miss facts.Missing
	var p *model.Process
	at := ps.now()
	cost, _ = cputime.Of(func() error {
		p = m.read(ps.proc, ps.jvm.of(key), at, key.PID, &miss)
		return nil
	})
	if p != nil && p.StartTime != key.StartTime { // the number is another's by now
		p = nil
	}
	ps.store.PutProcess(key, at, p, miss.List)
	return cost
}

// MayStand reports whether a process is a JVM that may stand still at its latest reading: the next
// ones show it.
func (ps *Processes) MayStand(key hostproc.ProcessKey) bool {
	m := ps.memory[key]
	return m != nil && m.still.MayStand()
}

// Retain forgets all processes but those of the watched listeners.
func (ps *Processes) Retain(owners map[hostproc.ProcessKey]*facts.Watched) {
	for key, m := range ps.memory {
		if owners[key] == nil {
			m.close()
			delete(ps.memory, key)
		}
	}
}

// Close gives the files back.
func (ps *Processes) Close() { ps.Retain(nil) }
