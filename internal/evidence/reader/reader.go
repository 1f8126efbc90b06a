// Package reader takes the readings that package evidence judges, of one listener's
// process and its acceptor thread, through files of /proc that are kept open, and those of
// the processes of all watched listeners. They are put into facts.
package reader

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
)

// retry is how often what could not be opened is tried again.
const retry = time.Second

// Listener is whose evidence is read.
type Listener struct {
	PID   int
	Port  uint16
	Inode uint32 // of the listening socket
	// Others are the other ports that the process listens on; nil where they are
	// not known. A connector whose port is cut off its threads' names is found at
	// once when the names explain all of them, else when it is seen in accept().
	Others []uint16
	// Unowned are sockets that listen in its network namespace, too, and whose process is not known: it may be this one.
	Unowned []uint32
}

// Reader reads one listener's process. It is for one goroutine at a time, and
// for one process: make a new one when the pid or its start time changes.
type Reader struct {
	proc    hostproc.FS
	openJVM func() (*hsperf.File, error)
	of      Listener
	now     func() time.Time

	thread   *threads.Handle
	acceptor int // the thread's id; 0: the thread is the main one
	files    *openfiles.Handle
	jvm      *hsperf.File
	throttle *cgroup.ThrottleFile
	freezer  *cgroup.FreezerFile
	stands   evidence.Standstill

	searched bool // whether one of the Unowned is its own, see listensAlone

	tried   time.Time // when what is missing was tried last
	missing [evidence.NumSubjects]string
}

// Open opens what can be opened: the rest is tried again from time to time, and
// named in each reading. jvm opens the process's performance data.
func Open(proc hostproc.FS, jvm func() (*hsperf.File, error), of Listener, now func() time.Time) *Reader {
	r := &Reader{proc: proc, openJVM: jvm, of: of, now: now}
	r.open(now())
	return r
}

// Read takes a reading. It costs some small files and allocates nothing, except
// when something is opened.
func (r *Reader) Read() evidence.Reading {
	now := r.now()
	if now.Sub(r.tried) >= retry {
		r.open(now)
	}
	out := evidence.Reading{Began: r.now(), Missing: r.missing}
	r.readSafepoints(&out)
	r.readThread(&out)
	r.readFreezer(&out)
	r.readFiles(&out)
	r.readThrottle(&out)
	out.Ended = r.now()
	return out
}

// Close closes the files.
func (r *Reader) Close() {
	r.closeThread()
	if r.files != nil {
		r.files.Close()
	}
	if r.jvm != nil {
		_ = r.jvm.Close()
	}
	if r.throttle != nil {
		r.throttle.Close()
	}
	if r.freezer != nil {
		r.freezer.Close()
	}
}
