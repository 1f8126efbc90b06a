package discovery

import (
	"errors"
	"io/fs"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
)

// ErrUnexamined says that nothing is known of a process yet.
var ErrUnexamined = errors.New("it has not been examined yet")

// errPerfData is why there is no performance data, other than that there is none or
// that it may not be read.
var errPerfData = errors.New("its performance data could not be opened")

// PerfData is the file in which a JVM publishes its counters, opened by who examined
// the process, or why there is none. Both are unset when nothing is known.
type PerfData struct {
	File *os.File
	Err  error
}

// The first byte of the message that carries the file.
const (
	perfDataFile   = 'f'
	perfDataNone   = 'n'
	perfDataDenied = 'd'
	perfDataFailed = 'x'
)

// perfDataKind is the byte that says what err is.
func perfDataKind(err error) byte {
	switch {
	case err == nil:
		return perfDataFile
	case errors.Is(err, hsperf.ErrNoPerfData):
		return perfDataNone
	case errors.Is(err, fs.ErrPermission):
		return perfDataDenied
	}
	return perfDataFailed
}

// newPerfData is what the byte and the file beside it mean.
func newPerfData(kind byte, file *os.File) PerfData {
	if kind == perfDataFile && file != nil {
		return PerfData{File: file}
	}
	if file != nil {
		_ = file.Close()
	}
	switch kind {
	case perfDataNone:
		return PerfData{Err: hsperf.ErrNoPerfData}
	case perfDataDenied:
		return PerfData{Err: fs.ErrPermission}
	}
	return PerfData{Err: errPerfData}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// openJVM opens the process's performance data, once.
func (s *subject) openJVM() {
	if s.jvm == nil && s.jvmErr == nil {
		s.jvm, s.jvmErr = hsperf.Open(s.handles)
	}
}

// jvmFile is the performance data of a process, for the entry to keep.
type jvmFile struct {
	file *hsperf.File
	err  error
}

// adopt checks what an examination has brought. It asks nobody but the kernel.
func (d *Discoverer) adopt(r Request, data PerfData) jvmFile {
	if data.File == nil {
		return jvmFile{err: data.Err}
	}
	file, err := hsperf.Adopt(d.proc, hostproc.ProcessKey{PID: r.PID, StartTime: r.StartTime}, data.File)
	return jvmFile{file, err}
}

// keep replaces the former file. What is open elsewhere stays open.
func (f *jvmFile) keep(now jvmFile) {
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
