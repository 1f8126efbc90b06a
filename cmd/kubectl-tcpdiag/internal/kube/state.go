package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// NotRunning says why nothing of a pod can be asked, "" where it runs.
func NotRunning(pod *core.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "it is being deleted"
	case pod.Status.Phase == core.PodSucceeded:
		return "it has completed"
	case pod.Status.Phase == core.PodFailed:
		return "it has failed" + said(pod.Status.Reason, pod.Status.Message)
	case pod.Status.Phase == core.PodRunning:
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.PodScheduled && c.Status == core.ConditionFalse {
			return "it is Pending, on no node yet" + said(c.Reason, c.Message)
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if s.Ready || s.State.Running != nil && staysOn(pod, s.Name) {
			continue
		}
		if t := s.State.Terminated; t == nil || t.ExitCode != 0 {
			return "it is Pending: init container " + s.Name + " " + doing(s)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.State.Running == nil {
			return "it is Pending: container " + s.Name + " " + doing(s)
		}
	}
	return "it is " + cmp.Or(string(pod.Status.Phase), "Pending")
}

// staysOn: it is a sidecar, an init container that does not end.
func staysOn(pod *core.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c core.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways
	})
}

// Stopped says why a container of a pod that runs does not, "" where it does or where the API
// server does not know; previous is the flag with which kubectl logs has its last words.
func Stopped(pod *core.Pod, container string) (why, previous string) {
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		switch {
		case s.Name != container, s.State.Running != nil:
		case s.State.Terminated != nil:
			return doing(&s), ""
		case s.State.Waiting != nil:
			return doing(&s), " --previous"
		}
	}
	return "", ""
}

// doing is the state of a container, in words that follow its name.
func doing(s *core.ContainerStatus) string {
	last := ""
	if t := s.LastTerminationState.Terminated; t != nil {
		last = ", ended last" + ended(t)
	}
	switch {
	case s.State.Running != nil:
		return "runs, and has not ended"
	case s.State.Terminated != nil:
		return "has ended" + ended(s.State.Terminated)
	case s.State.Waiting != nil:
		return "waits" + said(s.State.Waiting.Reason, s.State.Waiting.Message) + last
	}
	return "waits" + last
}

func ended(t *core.ContainerStateTerminated) string {
	return fmt.Sprintf(" with exit code %d%s", t.ExitCode, said(t.Reason, ""))
}

// said is a reason and a message of others, in brackets.
func said(reason, message string) string {
	var parts []string
	for _, p := range []string{reason, message} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + Printable(errors.New(strings.Join(parts, ": "))) + ")"
}

// Windows reports whether a pod says that it is for nodes of that kind.
func Windows(pod *core.Pod) bool {
	return pod.Spec.OS != nil && pod.Spec.OS.Name == core.Windows || pod.Spec.NodeSelector[core.LabelOSStable] == string(core.Windows)
}

// defaultContainer is the annotation by which kubectl logs and kubectl exec choose, too.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Container is the one that is meant: by its name, else the pod's default, else the first that
// is not called without.
func Container(pod *core.Pod, name, without string) (*core.Container, error) {
	all := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	find := func(is func(core.Container) bool) *core.Container {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return &all[i]
		}
		return nil
	}
	named := func(name string) *core.Container {
		return find(func(c core.Container) bool { return c.Name == name })
	}
	if name != "" {
		if c := named(name); c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("the pod has no container %q; -c takes one of %s", model.Printable(name), strings.Join(Containers(pod), ", "))
	}
	if c := named(pod.Annotations[defaultContainer]); c != nil {
		return c, nil
	}
	if c := find(func(c core.Container) bool { return c.Name != without }); c != nil {
		return c, nil
	}
	return nil, errors.New("the pod has no other container than " + without)
}

// Running are the names of a pod's containers of which it is not known that they do not run.
func Running(pod *core.Pod) []string {
	return slices.DeleteFunc(Containers(pod), func(name string) bool {
		why, _ := Stopped(pod, name)
		return why != ""
	})
}

// Containers are the names of a pod's containers, those of init containers last.
func Containers(pod *core.Pod) (names []string) {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names = append(names, c.Name)
	}
	return names
}
