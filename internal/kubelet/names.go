// Package kubelet tells which pod and container a process belongs to, without asking the API server:
// from the names of the files and folders that the kubelet makes for the containers' logs.
//
//	/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log   a symbolic link for each container
//	/var/log/pods/NAMESPACE_POD_UID/CONTAINER            a folder for each
//
// Names are read; nothing there is opened or followed. A pod's own host name and /etc/hosts are
// its own to write, and never used.
package kubelet

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// DefaultLogs is where kubelets have the two folders.
	DefaultLogs = "/var/log"
	// scanEvery is the shortest time between two readings of the folders.
	scanEvery = 100 * time.Millisecond
	// scanPart is the part of a core that they may take.
	scanPart = 0.02
	// settled is how old a change must be, so that a later one shows in the folder's time: file
	// systems stamp in steps.
	settled = 2 * time.Second
	// patience is how long the name of a new pod is waited for: the kubelet makes the link
	// after the container has started.
	patience = 10 * time.Second
)

// Names are those of the pods of one node. They are for one goroutine at a time.
type Names struct {
	logs string
	now  func() time.Time

	known   map[cgroup.Pod]*known
	at      time.Time     // of the latest reading of the folders
	cost    time.Duration // of CPU time, of that reading
	changed [2]time.Time  // when they had last changed by then
	err     error         // what could not be read
}

// known is what is known of one container.
type known struct {
	pod   *model.Pod // nil where no name may be said
	first time.Time  // that it was asked for
}

// New reads the folders below logs.
func New(logs string, now func() time.Time) *Names {
	return &Names{logs: logs, now: now, known: make(map[cgroup.Pod]*known)}
}

// Refresh names these containers, and forgets all others. The folders are read again when they have
// changed or one is new, as often as their cost allows; at once: without that bound, for who asks
// only once.
func (n *Names) Refresh(containers []cgroup.Pod, atOnce bool) {
	now := n.now()
	next, fresh := make(map[cgroup.Pod]*known, len(containers)), false
	for _, c := range containers {
		if c == (cgroup.Pod{}) {
			continue
		}
		if next[c] = n.known[c]; next[c] == nil {
			next[c], fresh = &known{first: now}, true
		}
	}
	unread := fresh || slices.ContainsFunc(slices.Collect(maps.Values(next)), func(k *known) bool { return k.first.After(n.at) })
	n.known = next
	rest := cputime.Rest(n.cost, scanEvery, scanPart)
	if len(next) == 0 || !atOnce && now.Sub(n.at) < rest || !unread && !n.stale() {
		return
	}
	n.cost, _ = cputime.Of(func() error { n.scan(now); return nil })
}

// Of is the pod of a container that was looked for, nil where it is not known.
func (n *Names) Of(c cgroup.Pod) *model.Pod {
	if k := n.known[c]; k != nil {
		return k.pod
	}
	return nil
}

// Waiting reports whether a pod is so new that its name may be there in a second.
func (n *Names) Waiting() bool {
	now := n.now()
	for c, k := range n.known {
		if c.UID != "" && (k.pod == nil || k.pod.Container == "") && now.Sub(k.first) < patience {
			return true
		}
	}
	return false
}

// Unavailable says what of the folders could not be read, where a pod's name would be in them.
func (n *Names) Unavailable() []model.Unavailable {
	if n.err == nil {
		return nil
	}
	for c, k := range n.known {
		if c.UID != "" && k.pod == nil {
			return []model.Unavailable{{
				What: "names of the pods", Why: n.err.Error(),
				How: "mount the node's /var/log/pods and /var/log/containers read-only, or say where they are (--kubelet-logs)",
			}}
		}
	}
	return nil
}

func (n *Names) folders() [2]string {
	return [2]string{filepath.Join(n.logs, "pods"), filepath.Join(n.logs, "containers")}
}

// stale reports whether a folder may have changed since it was read.
func (n *Names) stale() bool {
	for i, path := range n.folders() {
		at := changedAt(path)
		if !at.Equal(n.changed[i]) || n.at.Sub(at) < settled {
			return true
		}
	}
	return false
}

// changedAt is the folder's own time, zero where there is none.
func changedAt(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func (n *Names) scan(now time.Time) {
	n.at = now
	paths := n.folders()
	for i, path := range paths {
		n.changed[i] = changedAt(path)
	}
	found := newFound(n.known)
	err := found.readPods(paths[0])
	if linkErr := found.readLinks(paths[1]); err == nil {
		err = linkErr
	}
	n.err = err
	for c, k := range n.known {
		k.pod = found.name(c)
	}
}

// each calls fn with the entries of a folder, of a bounded number.
func each(path string, most int, fn func(os.DirEntry)) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for read := 0; ; {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if read++; read > most {
				return fmt.Errorf("%s: more than %d entries", path, most)
			}
			fn(e)
		}
		if len(entries) == 0 || err != nil {
			return ignoreEOF(err)
		}
	}
}
