package kubelet

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// maxEntries bounds what is read of a folder. A node has some hundred containers.
	maxEntries = 20000
	// maxContainers bounds what is read of a pod's folder.
	maxContainers = 100
	// maxCut bounds the links that are remembered because their names are cut.
	maxCut = 1000
)

// found is what one reading of the folders has, of the containers that are asked for.
type found struct {
	folders map[string][]folder // by the pod's uid
	links   map[string][]link   // by the container's id
	cut     map[string]bool     // names of links that the kubelet may have cut
	pods    string              // the folder of pods, "" where it cannot be read
}

func newFound(wanted map[cgroup.Pod]*known) *found {
	f := &found{folders: make(map[string][]folder), links: make(map[string][]link), cut: make(map[string]bool)}
	for c := range wanted {
		if c.UID != "" {
			f.folders[c.UID] = nil
		}
		if c.ContainerID != "" {
			f.links[c.ContainerID] = nil
		}
	}
	return f
}

func (f *found) readPods(path string) error {
	err := each(path, maxEntries, func(e os.DirEntry) {
		p, ok := parseFolder(e.Name())
		if !ok || !e.IsDir() {
			return
		}
		if list, wanted := f.folders[p.uid]; wanted {
			f.folders[p.uid] = append(list, p)
		}
	})
	if _, statErr := os.Stat(path); statErr == nil {
		f.pods = path
	}
	return err
}

func (f *found) readLinks(path string) error {
	return each(path, maxEntries, func(e os.DirEntry) {
		if e.Type() != os.ModeSymlink {
			return
		}
		if len(e.Name()) == maxLink+len(suffix) && len(f.cut) < maxCut {
			f.cut[e.Name()] = true
		}
		l, ok := parseLink(e.Name())
		if list, wanted := f.links[l.id]; ok && wanted {
			f.links[l.id] = append(list, l)
		}
	})
}

// name is the pod of a container, nil where the names do not agree: a link or a folder that
// somebody else put there makes unknown, never wrong.
func (f *found) name(c cgroup.Pod) *model.Pod {
	links := f.links[c.ContainerID]
	if c.UID == "" || f.pods == "" {
		if len(links) != 1 {
			return nil
		}
		return &model.Pod{Namespace: links[0].namespace, Name: links[0].pod, Container: links[0].container, UID: c.UID}
	}
	folders := f.folders[c.UID]
	if len(folders) != 1 {
		return nil
	}
	p := folders[0]
	for _, l := range links {
		if l.pod != p.pod || l.namespace != p.namespace {
			return nil
		}
	}
	out := &model.Pod{Namespace: p.namespace, Name: p.pod, UID: c.UID}
	switch len(links) {
	case 0:
		out.Container = f.containerOf(p, c.ContainerID)
	case 1:
		out.Container = links[0].container
	}
	return out
}

// containerOf is the container of a pod whose link is cut or not there: the pod's only one, or else
// the only one whose link the kubelet would call as one is called.
func (f *found) containerOf(p folder, id string) string {
	var all, linked []string
	err := each(filepath.Join(f.pods, p.namespace+"_"+p.pod+"_"+p.uid), maxContainers, func(e os.DirEntry) {
		if !e.IsDir() || !isLabel(e.Name()) {
			return
		}
		all = append(all, e.Name())
		if f.cut[linkName(p, e.Name(), id)] {
			linked = append(linked, e.Name())
		}
	})
	switch {
	case err != nil || id == "":
		return ""
	case len(all) == 1:
		return all[0]
	case len(linked) == 1:
		return linked[0]
	}
	return ""
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
