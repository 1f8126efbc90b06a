package examine

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Settled is how old a process must be for its configuration to be read
// and done with: a file that changes later changes nothing in it.
const Settled = time.Minute

// Request names a process: a pid, and field 22 of its /proc/PID/stat.
type Request struct {
	PID       int
	StartTime uint64
	Owner     string `json:"-"` // whose turn it is, and whose are the children that hang
}

// Examiner finds out what a process is and what its configuration says. It reads
// what a stranger wrote. The performance data of a JVM is the caller's to close, and may be
// there without an Examination.
type Examiner interface {
	Examine(ctx context.Context, r Request) (*Examination, PerfData, error)
}

// Examination is what a process turned out to be. It does not change afterwards.
type Examination struct {
	Known   bool // the command line could be read
	pid     int
	Found   match.Found
	Missing []model.Unavailable
	files   []fileStamp
	Numbers []uint16 // in the command line: ports among them
}

// fileStamp is a path that was read. Content is the same as long as the
// file's content is, "" where there was nothing to read.
type fileStamp struct {
	Name    string
	Content string
	Denied  bool // for want of permission
	Folder  bool
}

func (f *files) stamps() []fileStamp {
	out := make([]fileStamp, 0, len(f.seen))
	for p, s := range f.seen {
		out = append(out, fileStamp{p.name, s.content(), s.denied, s.folder})
	}
	slices.SortFunc(out, func(a, b fileStamp) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Change compares with a later examination: which files have another content, or
// none, or one at last; and whether one can be read that could not.
func (e *Examination) Change(later *Examination) (changed []string, readable bool) {
	now := make(map[string]fileStamp, len(later.files))
	for _, f := range later.files {
		now[f.Name] = f
	}
	for _, was := range e.files {
		is, asked := now[was.Name]
		switch {
		case !asked || is == was:
		case was.Denied != is.Denied:
			readable = readable || was.Denied
		case was.Content != is.Content && !was.Folder && !is.Folder:
			changed = append(changed, was.Name)
		}
	}
	return changed, readable
}

// doubtLate notes on each setting from a file that was written after the
// process had started that the process may have read something else.
func doubtLate(f *match.Found, t *target) {
	if t.started.IsZero() {
		return
	}
	for _, name := range t.files.writtenAfter(t.started.Add(Settled)) {
		f.Backends = doubtFile(path.Base(name)).backends(f.Backends)
		for i := range f.Connectors {
			doubtFile(path.Base(name)).connector(&f.Connectors[i].Connector)
		}
	}
}
