package cgroup

import (
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// KeptFreezer reads whether a process's group is frozen through a file that is kept
// open. A process that moves to another group is not noticed. It is for one goroutine
// at a time.
type KeptFreezer struct{ state *procfile.Kept }

// KeepFreezer opens the file, of a mount that is ours; ErrNotSupported where there is
// none.
func KeepFreezer(fs hostproc.FS, pid int) (*KeptFreezer, error) {
	r, err := newReading(fs, pid)
	if err != nil {
		return nil, err
	}
	defer r.close()
	group, v2, ok := controllerPath(r.groups, "freezer")
	if !ok {
		return nil, fs.Wrap(pid, "freezer", hostproc.ErrNotSupported)
	}
	point, rel, ok := r.own("freezer", group, v2)
	if !ok {
		return nil, fs.Wrap(pid, "freezer", hostproc.ErrNotSupported)
	}
	state, err := procfile.Keep(frozenFile(point, rel, v2), 1<<7)
	if err != nil {
		return nil, fs.Wrap(pid, "freezer", hostproc.ErrNotSupported)
	}
	return &KeptFreezer{state: state}, nil
}

// Frozen is the state of this moment.
func (k *KeptFreezer) Frozen() (bool, error) {
	data, err := k.state.Read()
	return err == nil && isFrozen(data), err
}

// Close closes the file.
func (k *KeptFreezer) Close() { _ = k.state.Close() }
