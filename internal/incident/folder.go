package incident

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
)

// folder is the directory of the recordings. Whatever else is in it is left
// alone. What is opened stays within it, even if other users can write to it.
type folder struct {
	root  *os.Root
	lock  *os.File // held as long as the agent writes here
	group *int     // that may read; nil: whatever group it has
}

// openFolder makes the directory where it is not there, and takes it: of two
// agents one writes. A directory that its group or everybody may write to is refused, and one behind
// another user's symbolic link. The group, where one is given, may read what is in it.
func openFolder(path string, group *int) (*folder, error) {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, err
	}
	if err := trustedLink(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root, group: group}
	if err := f.take(path); err != nil {
		f.close()
		return nil, err
	}
	if err := f.share(path); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// trustedLink refuses a symbolic link that somebody else than root or the agent's own user made: who made it
// may let it lead elsewhere. systemd makes one for a service with DynamicUser=.
func trustedLink(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if uid, _, ok := userOf(info); ok && info.Mode()&fs.ModeSymlink != 0 && uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("%s: a symbolic link of another user; give the directory itself", path)
	}
	return nil
}

func (f *folder) take(path string) error {
	info, err := f.root.Stat(".")
	if err != nil {
		return err
	}
	switch {
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s: everybody may write to it; use a directory of the agent's own", path)
	case info.Mode().Perm()&0o020 != 0:
		return fmt.Errorf("%s: its group may write to it; chmod g-w, or use a directory of the agent's own", path)
	}
	f.lock, err = f.root.OpenFile(".lock", os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if lockedByAnother(f.lock) {
		return fmt.Errorf("%s: another agent writes to it", path)
	}
	return nil // a file system without locks is used without
}

// share gives the directory to its group, which may then list it, and compares.
// A user may do so who is of that group, or has CAP_CHOWN.
func (f *folder) share(path string) error {
	if f.group == nil {
		return nil
	}
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := give(dir, *f.group, 0o750, path); err != nil {
		return err
	}
	ids, err := f.ids()
	if err != nil {
		return err
	}
	for _, id := range ids { // of an agent that gave them to nobody
		if file, err := f.open(id); err == nil {
			_ = give(file, *f.group, 0o640, nameOf(id))
			_ = file.Close()
		}
	}
	return nil
}

// give makes a file one of a group that may read it, whatever the umask is, and
// reads back that it is: chown clears bits of the mode, and some file systems change nothing.
func give(file *os.File, group int, mode fs.FileMode, name string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, gid, ok := userOf(info); !ok || gid != group {
		if err := file.Chown(-1, group); err != nil {
			return fmt.Errorf("%s: cannot be given to group %d; the agent's user has to be of that group: %w", name, group, err)
		}
	}
	if info.Mode().Perm() != mode {
		if err := file.Chmod(mode); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if info, err = file.Stat(); err != nil {
		return err
	}
	if _, gid, ok := userOf(info); !ok || gid != group || info.Mode().Perm() != mode {
		return fmt.Errorf("%s: its file system does not give it to group %d with mode %o", name, group, mode)
	}
	return nil
}

func (f *folder) close() {
	if f.lock != nil {
		_ = f.lock.Close()
	}
	_ = f.root.Close()
}

// create makes the file of a recording.
func (f *folder) create(id string) (*os.File, error) {
	file, err := f.root.OpenFile(nameOf(id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil || f.group == nil {
		return file, err
	}
	if err := give(file, *f.group, 0o640, nameOf(id)); err != nil {
		_ = file.Close()
		_ = f.root.Remove(nameOf(id))
		return nil, err
	}
	return file, nil
}

// open opens a recording to read: a regular file, not what was put in its place.
func (f *folder) open(id string) (*os.File, error) {
	file, err := f.root.OpenFile(nameOf(id), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("%s: not a file", nameOf(id))
	}
	return file, nil
}

func (f *folder) remove(id string) error {
	err := f.root.Remove(nameOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

const (
	// mostRead is how many names of the directory are read, mostIDs of how many recordings the latest are listed: who may write to it
	// can fill it.
	mostRead = 100_000
	mostIDs  = 20_000
)

// ids lists the recordings, the oldest first.
func (f *folder) ids() ([]string, error) { return f.latest(mostIDs) }

// latest lists that many, the latest.
func (f *folder) latest(most int) ([]string, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	var out []string
	for range mostRead / 256 {
		files, err := dir.ReadDir(256)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for _, file := range files {
			id, ours := strings.CutSuffix(file.Name(), ".tcpdiag")
			if ours && IsID(id) && file.Type().IsRegular() {
				out = append(out, id)
			}
		}
		if len(files) == 0 {
			break
		}
		if len(out) >= 2*most {
			out = sorted(out, most)
		}
	}
	return sorted(out, most), nil
}

// sorted are the latest, the oldest first.
func sorted(ids []string, most int) []string {
	slices.SortFunc(ids, func(a, b string) int {
		x, _ := numberOf(a)
		y, _ := numberOf(b)
		return x - y
	})
	return ids[max(0, len(ids)-most):]
}

// recover reads what a recording holds, in brief. To one that its agent could not
// end it appends the end.
func (f *folder) recover(id string, deadline time.Time) (*entry, error) {
	e, endless, err := f.peek(id, deadline)
	if endless {
		e.CutOff()
		f.finish(id, &e.Summary)
	}
	return e, err
}

// peek reads what a recording holds, in brief: endless, one that has no end yet.
func (f *folder) peek(id string, deadline time.Time) (e *entry, endless bool, err error) {
	number, _ := numberOf(id)
	file, err := f.open(id)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	e = &entry{number: number, size: info.Size()}
	if end := lastRecord(file, info.Size()); end != nil {
		e.Summary = end.Summary
	} else if e.Summary, err = summarize(file, deadline); err != nil {
		// It takes up room, and goes with the oldest.
		if e.Began.IsZero() {
			e.Began, e.LastSeen = info.ModTime(), info.ModTime()
		}
		e.Ended, e.Reason, e.Text = e.LastSeen, recording.EndInterrupted, err.Error()
	} else if endless = true; time.Since(info.ModTime()) > recording.Silent {
		e.CutOff()
	}
	e.ID = id
	return e, endless, nil
}

// finish appends the end; where it cannot be written, nothing is lost.
func (f *folder) finish(id string, s *recording.Summary) {
	file, err := f.root.OpenFile(nameOf(id), os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	text, err := recording.Line{End: &recording.End{At: s.Ended, Reason: s.Reason, Summary: *s}}.Encode()
	if err == nil {
		_, _ = file.Write(append([]byte("\n"), text...)) // behind what was torn off
	}
}

// lastRecord is the end of a recording that has one.
func lastRecord(file io.ReaderAt, size int64) *recording.End {
	const most = 64 << 10
	tail := make([]byte, min(size, most))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	text := strings.TrimSuffix(string(tail), "\n")
	l, err := recording.NewLines(strings.NewReader(text[strings.LastIndexByte(text, '\n')+1:] + "\n")).Line()
	if err != nil {
		return nil
	}
	return l.End
}

// touch sets the time of the last change.
func (f *folder) touch(id string) {
	now := time.Now()
	_ = f.root.Chtimes(nameOf(id), now, now)
}

var errLate = errors.New("it was not ended, and to read the whole of it would have taken too long")

// summarize reads a recording whose end is missing, frame by frame, until the deadline.
func summarize(in io.Reader, deadline time.Time) (recording.Summary, error) {
	r, err := recording.NewReader(in)
	if err != nil {
		return recording.Summary{}, err
	}
	s := r.Header.Summary()
	for time.Now().Before(deadline) {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			if !r.Behind.At.IsZero() {
				s.Pass(&r.Behind)
			}
			return s, nil
		}
		if err != nil {
			return s, err
		}
		s.See(f)
	}
	return s, errLate
}
