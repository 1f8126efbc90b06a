package incident

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
)

// maxListed bounds how many recordings of a directory are listed, the latest.
const maxListed = 200

// Library reads the recordings of a directory, in which an agent may be writing, and
// changes nothing.
type Library struct{ folder folder }

// OpenLibrary opens a directory.
func OpenLibrary(path string) (*Library, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Library{folder{root: root}}, nil
}

// Close closes it.
func (l *Library) Close() { l.folder.close() }

// List is what the latest recordings hold, in brief, the latest first. Those that
// cannot be read are left out.
func (l *Library) List() ([]recording.Summary, error) {
	ids, err := l.folder.ids()
	if err != nil {
		return nil, err
	}
	var out []recording.Summary
	for _, id := range slices.Backward(ids) {
		if len(out) == maxListed {
			break
		}
		if e, _, err := l.folder.peek(id, time.Now().Add(recoverWithin)); err == nil && e.Port != 0 {
			out = append(out, e.Summary)
		}
	}
	return out, nil
}

// IDs lists the recordings, the oldest first.
func (l *Library) IDs() ([]string, error) { return l.folder.ids() }

// Open opens a recording as a file that may still be written; ErrUnknown where there is
// none of that ID.
func (l *Library) Open(id string) (*os.File, error) {
	if !IsID(id) {
		return nil, ErrUnknown
	}
	in, err := l.folder.open(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened", nameOf(id))
	}
	return in, nil
}

// Read reads a recording. The error is ErrUnknown where there is none of that ID.
func (l *Library) Read(id string) (*story.Story, error) {
	in, err := l.Open(id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	s, err := Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(id), err)
	}
	s.Summary.ID = id
	return s, nil
}

// Read reads a recording. A file that has no end, and was not written for a while, is one whose agent
// was killed.
func Read(in io.Reader) (*story.Story, error) {
	s, err := story.Read(in)
	if err != nil {
		return nil, err
	}
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && time.Since(info.ModTime()) > recording.Silent {
			s.Summary.CutOff()
		}
	}
	return s, nil
}
