package cgroup

import (
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// FreezerFile reads whether a process's group is frozen through a file that is kept
// open. A process that moves to another group is not noticed. It is for one goroutine
// at a time.
type FreezerFile struct{ state *procfile.Handle }

// OpenFreezer opens the file, of a mount that is ours; ErrNotSupported where there is
// none.
func OpenFreezer(fs hostproc.FS, pid int) (*FreezerFile, error) {
	r, err := newReading(fs, pid)
	if err != nil {
		return nil, err
	}
	defer r.close()
	group, v2, ok := controllerPath(r.groups, "freezer")
	if !ok {
		return nil, fs.Wrap(pid, "freezer", hostproc.ErrNotSupported)
	}
	point, rel, ok := r.visibleHere("freezer", group, v2)
	if !ok {
		return nil, fs.Wrap(pid, "freezer", hostproc.ErrNotSupported)
	}
	state, err := procfile.OpenHandle(frozenFile(point, rel, v2), 1<<7)
	if err != nil {
		return nil, fs.Wrap(pid, "freezer", hostproc.ErrNotSupported)
	}
	return &FreezerFile{state: state}, nil
}

// Frozen is the state of this moment.
func (k *FreezerFile) Frozen() (bool, error) {
	data, err := k.state.Read()
	return err == nil && isFrozen(data), err
}

// Close closes the file.
func (k *FreezerFile) Close() { _ = k.state.Close() }
