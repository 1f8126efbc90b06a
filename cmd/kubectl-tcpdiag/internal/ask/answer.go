package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/foreign"
)

// mostValues bounds what an answer decodes to: five bytes of JSON can become 400.
const mostValues = 200_000

var errStrange = errors.New("what answers there is no tcpdiag agent, or one of another version than this (kubectl tcpdiag --version); --via ephemeral adds one of the same")

// Decode reads a document of an agent's, whose texts are made safe to show: whoever answers for a
// pod may be anybody in it.
func Decode[T any](body []byte) (*T, error) {
	out := new(T)
	switch {
	case bytes.Count(body, []byte(","))+bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > mostValues:
		return nil, fmt.Errorf("the agent there sends more than %d values", mostValues)
	case json.Unmarshal(body, out) != nil:
		return nil, errStrange
	}
	foreign.Clean(out)
	return out, nil
}

func decodeSnapshot(body []byte) (*api.Snapshot, error) {
	s, err := Decode[api.Snapshot](body)
	if err == nil && s.Schema != api.SnapshotSchema {
		err = errStrange
	}
	return s, err
}

// ofPod leaves what is of the pod: of its uid, or of none where the answer is from within
// the pod. Names are the API server's, never an answer's.
func (a *Asker) ofPod(s *api.Snapshot, pod *core.Pod, within bool) {
	container := strings.TrimPrefix(containerID(pod, a.opt.Container), "containerd://")
	container = container[strings.LastIndex(container, "/")+1:] // cri-o://ID, docker://ID
	s.Listeners = slices.DeleteFunc(s.Listeners, func(l api.Listener) bool {
		p := l.Process
		switch {
		case len(a.opt.Ports) > 0 && !slices.Contains(a.opt.Ports, int(l.Port)):
			return true
		case len(a.opt.Ports) == 0 && p != nil && p.Comm == "tcpdiag": // an agent, of which nobody asks
			return true
		case !a.isOf(pod, p, within):
			return true
		case container != "" && p != nil && p.Container != "" && p.Container != container:
			return true
		}
		return false
	})
	s.Host = pod.Namespace + "/" + pod.Name
	spaces, pids := map[uint64]bool{}, map[string]bool{}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		spaces[l.NetNS] = true
		if l.Process != nil {
			pids[strconv.Itoa(l.Process.PID)] = true
		}
		a.adapt(l, pod)
	}
	if within {
		return
	}
	s.Notes, s.Omitted = nil, 0
	s.NetNS = slices.DeleteFunc(s.NetNS, func(n api.NetNS) bool { return !spaces[n.ID] })
	s.Unavailable = slices.DeleteFunc(s.Unavailable, func(u api.Unavailable) bool {
		of := regexp.MustCompile(`\bpid (\d+)`).FindStringSubmatch(u.What)
		return of != nil && !pids[of[1]]
	})
}

// isOf reports whether a listener is the pod's, by its process.
func (a *Asker) isOf(pod *core.Pod, p *api.Process, within bool) bool {
	switch {
	case p != nil && p.PodUID != "":
		return p.PodUID == string(pod.UID)
	case !within:
		return false
	case !pod.Spec.HostNetwork: // nobody else listens in the pod's network
		return true
	}
	return p != nil || len(a.opt.Ports) > 0 // in the node's anybody does
}

// containerID is the one that the kubelet gave a container, "" where it has none.
func containerID(pod *core.Pod, name string) string {
	if name == "" {
		return ""
	}
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		if s.Name == name {
			return s.ContainerID
		}
	}
	return ""
}

// adapt replaces the commands that are for a shell on the node by those that do the same
// from here.
func (a *Asker) adapt(l *api.Listener, pod *core.Pod) {
	if l.Verdict.Answer == nil {
		return
	}
	for i := range l.Verdict.Answer.Do {
		if step := &l.Verdict.Answer.Do[i]; strings.Contains(step.Command, "tcpdiag snapshot") && strings.Contains(step.Command, "--thread-dump") {
			step.Command = fmt.Sprintf("kubectl tcpdiag %s -n %s --thread-dump", pod.Name, pod.Namespace)
		}
	}
}

// ofHandshakes reports whether that is why clients are not counted.
func ofHandshakes(u api.Unavailable) bool { return strings.HasPrefix(u.What, "clients by outcome") }

// whyUncounted is the agent's own reason.
func whyUncounted(s *api.Snapshot) string {
	for _, u := range s.Unavailable {
		switch {
		case !ofHandshakes(u):
		case strings.Contains(u.How, "CAP_NET_RAW"):
			return "it lacks CAP_NET_RAW"
		default:
			return u.Why
		}
	}
	return "handshakes are not followed"
}

// Unseen is what an answer could not see, in words, for one line.
func Unseen(s *api.Snapshot, source *Source) (what []string) {
	listening, counted := 0, 0
	for i := range s.Listeners {
		if s.Listeners[i].Address != "" {
			listening++
		}
		if s.Listeners[i].Clients != nil {
			counted++
		}
	}
	if listening > 0 && counted == 0 {
		what = append(what, "clients ("+whyUncounted(s)+"): a bound by dropped packets instead")
	}
	denied := 0
	for _, u := range s.Unavailable {
		if !ofHandshakes(u) {
			denied++
		}
	}
	switch {
	case denied == 1:
		what = append(what, "one reading that was not possible (-v lists it)")
	case denied > 1:
		what = append(what, strconv.Itoa(denied)+" readings that were not possible (-v lists them)")
	}
	return what
}
