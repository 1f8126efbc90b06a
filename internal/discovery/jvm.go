package discovery

import (
	"errors"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
)

// jvmFile is the performance data of a process, for the entry to keep.
type jvmFile struct {
	file *hsperf.File
	err  error
}

// adopt checks what an examination has brought. It asks nobody but the kernel.
func (d *Discoverer) adopt(r examine.Request, data examine.PerfData) jvmFile {
	if data.File == nil {
		return jvmFile{err: data.Err}
	}
	file, err := hsperf.Adopt(d.proc, hostproc.ProcessKey{PID: r.PID, StartTime: r.StartTime}, data.File)
	return jvmFile{file, err}
}

// replace replaces the file of before. What is open elsewhere stays open.
func (f *jvmFile) replace(now jvmFile) {
	switch {
	case now.file != nil:
		f.close()
		*f = now
	case f.file == nil && now.err != nil:
		f.err = now.err
	}
}

func (f *jvmFile) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file = nil
}

// JVM opens a process's performance data, as the latest examination found it. The
// file is the caller's; see hostproc.JVMFile. ErrUnexamined comes before the first one.
func (d *Discoverer) JVM(key hostproc.ProcessKey) (*hsperf.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[key.PID]
	switch {
	case e == nil || e.StartTime != key.StartTime:
		return nil, ErrUnexamined
	case e.jvm.file != nil:
		return e.jvm.file.Again()
	case e.jvm.err != nil:
		return nil, e.jvm.err
	}
	return nil, ErrUnexamined
}

// ErrUnexamined says that nothing is known of a process yet.
var ErrUnexamined = errors.New("it has not been examined yet")
