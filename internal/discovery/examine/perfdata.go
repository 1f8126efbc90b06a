package examine

import (
	"errors"
	"io/fs"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
)

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
