package ask

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// ephemeral is a container that is added to the pod: of the target's user, with the rights
// of Pod Security's restricted. It ends by itself; the one that is there is asked again.
func (a *Asker) ephemeral(ctx context.Context, pod *core.Pod) (*Source, error) {
	target, err := a.target(pod)
	if err != nil {
		return nil, err
	}
	if c := a.running(pod, target.Name); c != nil {
		return a.ephemeralSource(pod, c, " that was there"+among(pod, target)), nil
	}
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.opt.Patience)
	defer cancel()
	ids, err := a.ids(ctx, pod, target)
	if err != nil {
		return nil, err
	}
	c := a.container(pod, target.Name, ids)
	c.Args = a.args(pod, portOf(pod))
	if err := a.start(ctx, pod, c); err != nil {
		return nil, err
	}
	source := a.ephemeralSource(pod, c, fmt.Sprintf(" (uid %d, gid %d) that ends in %v%s", ids.UID, ids.GID, a.opt.Lifetime, among(pod, target)))
	return source, a.settled(ctx, pod, ephemeralAt(pod, c))
}

// mayAdd bounds to how many pods something is added that nobody asked for by name.
func (a *Asker) mayAdd() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opt.Via == "" && a.added >= a.opt.MostAdded {
		return &errNone{fmt.Sprintf("an ephemeral container was added to %d other pods: --via ephemeral adds one to each", a.added)}
	}
	a.added++
	return nil
}

// target is the container whose processes the ephemeral one is to see.
func (a *Asker) target(pod *core.Pod) (*core.Container, error) {
	c, err := kube.Container(pod, a.opt.Container, containerName)
	if err != nil {
		return nil, err
	}
	if why, previous := kube.Stopped(pod, c.Name); why != "" {
		return nil, fmt.Errorf("container %s %s: kubectl logs -n %s %s -c %s%s says why", c.Name, why, pod.Namespace, pod.Name, c.Name, previous)
	}
	return c, nil
}

const (
	prefix  = containerName + "-"
	listens = "--web.listen-address="
	// topPort is where the first one serves, the next one below: a sidecar may have its own.
	topPort = 10899
	// In the node's own network other pods have theirs: each begins somewhere in this range,
	// in which are neither node ports nor those that the kernel gives to clients.
	nodePort, nodePorts = 20000, 9000
)

// listensAt is where an ephemeral container of a pod serves: in the node's network at the
// loopback alone, or whoever reaches the node could ask it.
func listensAt(pod *core.Pod, port int) string {
	host := ""
	if pod.Spec.HostNetwork {
		host = "127.0.0.1"
	}
	return listens + net.JoinHostPort(host, strconv.Itoa(port))
}

// running is one of before, for the same container and ports.
func (a *Asker) running(pod *core.Pod, target string) *core.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		if !strings.HasPrefix(c.Name, prefix) || c.TargetContainerName != target || !slices.Equal(c.Args, a.args(pod, servedAt(c))) {
			continue
		}
		if s := statusOf(pod, c.Name); s != nil && s.State.Running != nil && time.Since(s.State.Running.StartedAt.Time) < a.opt.Lifetime-a.opt.Patience/2 {
			return c
		}
	}
	return nil
}

// args are the agent's.
func (a *Asker) args(pod *core.Pod, port int) []string {
	args := []string{"agent", "--lifetime=" + a.opt.Lifetime.String(), listensAt(pod, port), "--log-level=warn"}
	for _, p := range a.opt.Ports {
		args = append(args, "--port="+strconv.Itoa(p))
	}
	return args
}

func servedAt(c *core.EphemeralContainer) int {
	for _, arg := range c.Args {
		if text, ok := strings.CutPrefix(arg, listens); ok {
			_, text, _ = strings.Cut(text, ":")
			if n, err := strconv.ParseUint(text, 10, 16); err == nil {
				return int(n)
			}
		}
	}
	return 0
}

// portOf is one that no other of tcpdiag's containers in the pod has.
func portOf(pod *core.Pod) int {
	port := topPort
	if pod.Spec.HostNetwork {
		h := fnv.New32a()
		_, _ = h.Write([]byte(pod.UID))
		port = nodePort + int(h.Sum32()%nodePorts)
	}
	for i := range pod.Spec.EphemeralContainers {
		if at := servedAt(&pod.Spec.EphemeralContainers[i]); at != 0 {
			port = min(port, at-1)
		}
	}
	return max(port, 1024)
}

func statusOf(pod *core.Pod, name string) *core.ContainerStatus {
	for i := range pod.Status.EphemeralContainerStatuses {
		if s := &pod.Status.EphemeralContainerStatuses[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// userIDs are who a container runs as.
type userIDs struct {
	UID int64 `json:"uid"`
	GID int64 `json:"gid"`
}

// container is one more, of that user; nil for that of the image, which root may not be.
func (a *Asker) container(pod *core.Pod, target string, ids *userIDs) *core.EphemeralContainer {
	c := &core.EphemeralContainer{TargetContainerName: target}
	c.Name = prefix + strconv.Itoa(len(pod.Spec.EphemeralContainers)+1)
	c.Image, c.ImagePullPolicy = a.opt.Image, core.PullIfNotPresent
	c.SecurityContext = &core.SecurityContext{
		RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &core.Capabilities{Drop: []core.Capability{"ALL"}},
		SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
	}
	c.Env = []core.EnvVar{ // whose answer it is, as the downward API would tell a sidecar
		{Name: "POD_NAMESPACE", Value: pod.Namespace},
		{Name: "POD_NAME", Value: pod.Name},
		{Name: "POD_UID", Value: string(pod.UID)},
		{Name: "CONTAINER", Value: target},
	}
	if ids != nil {
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = &ids.UID, &ids.GID
		c.SecurityContext.RunAsNonRoot = new(ids.UID != 0)
	}
	return c
}

// start adds the container and waits until it runs.
func (a *Asker) start(ctx context.Context, pod *core.Pod, c *core.EphemeralContainer) error {
	if err := a.add(ctx, pod, c); err != nil {
		return err
	}
	return a.until(ctx, pod, c, func(s *core.ContainerStatus) bool { return s.State.Running != nil })
}

// add adds the container, or waits with one like it that a command of before has added and that
// has not started: none can be removed.
func (a *Asker) add(ctx context.Context, pod *core.Pod, c *core.EphemeralContainer) error {
	for i := range pod.Spec.EphemeralContainers {
		old := &pod.Spec.EphemeralContainers[i]
		s := statusOf(pod, old.Name)
		if s != nil && s.State.Waiting != nil && old.Image == c.Image && old.TargetContainerName == c.TargetContainerName && sameButPort(old.Args, c.Args) {
			*c = *old
			return nil
		}
	}
	err := a.client.AddEphemeral(ctx, pod.Namespace, pod.Name, c)
	if err != nil && strings.Contains(err.Error(), "violates PodSecurity") {
		err = fmt.Errorf("%w; the namespace admits no such pod since it has run, so nothing can be added: --via node adds nothing to it", err)
	}
	return err
}

// sameButPort compares the arguments of two agents that serve on different ports.
func sameButPort(a, b []string) bool {
	port := func(arg string) bool { return strings.HasPrefix(arg, listens) }
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), port), slices.DeleteFunc(slices.Clone(b), port))
}

// until waits for a state of the container. What will not become it by waiting is an error.
func (a *Asker) until(ctx context.Context, pod *core.Pod, c *core.EphemeralContainer, is func(*core.ContainerStatus) bool) error {
	why := fmt.Sprintf("the kubelet of %[1]s has not started it (kubectl get node %[1]s)", pod.Spec.NodeName)
	for {
		now, err := a.client.Pod(ctx, pod.Namespace, pod.Name)
		if err == nil {
			*pod = *now
			if s := statusOf(now, c.Name); s != nil {
				if is(s) {
					return nil
				}
				if t := s.State.Terminated; t != nil {
					return fmt.Errorf("the ephemeral container %s has ended (%s, exit code %d): kubectl logs -n %s %s -c %s", c.Name, model.Printable(t.Reason), t.ExitCode, pod.Namespace, pod.Name, c.Name)
				}
				if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" {
					why = kube.Printable(errors.New(w.Reason + ": " + w.Message))
					if hopeless(w.Reason) {
						return a.notStarted(c, pod, why)
					}
				}
			}
		} else if _, denied := kube.Lacks(err); denied {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return a.notStarted(c, pod, fmt.Sprintf("not after %v: %s", a.opt.Patience, why))
			}
			return ctx.Err()
		}
	}
}

// hopeless reports whether a container with the kubelet's reason does not start by waiting longer.
func hopeless(reason string) bool {
	switch reason {
	case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError":
		return true
	}
	return false
}

// notStarted is the error with what can be done: an image is what a cluster most often lacks.
func (a *Asker) notStarted(c *core.EphemeralContainer, pod *core.Pod, why string) error {
	remedy := "; it stays in the pod until that ends"
	if strings.Contains(why, "Image") {
		remedy = fmt.Sprintf("; --image takes one that %s can pull, --via node needs none", pod.Spec.NodeName)
	}
	return fmt.Errorf("the ephemeral container %s (image %s) does not run: %s%s", c.Name, c.Image, why, remedy)
}

// among says which of several containers is seen.
func among(pod *core.Pod, target *core.Container) string {
	all := slices.DeleteFunc(kube.Running(pod), func(name string) bool { return name == containerName })
	if len(all) < 2 {
		return ""
	}
	return fmt.Sprintf(", which sees container %s (-c: %s)", target.Name, strings.Join(all, ", "))
}

func (a *Asker) ephemeralSource(pod *core.Pod, c *core.EphemeralContainer, about string) *Source {
	return a.within(pod, kube.Ephemeral, "the ephemeral container "+c.Name+about, c.Name, ephemeralAt(pod, c))
}

func ephemeralAt(pod *core.Pod, c *core.EphemeralContainer) kube.Agent {
	return kube.Agent{Namespace: pod.Namespace, Pod: pod.Name, Port: servedAt(c), Loopback: pod.Spec.HostNetwork}
}

// settled waits until the agent has seen as much as a snapshot does.
func (a *Asker) settled(ctx context.Context, pod *core.Pod, at kube.Agent) error {
	const enough = 2.0 // seconds
	for {
		s, err := a.served(ctx, pod, at)
		if _, denied := kube.Lacks(err); denied {
			return err
		}
		if err == nil && s.IntervalSeconds >= enough {
			return nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			if err == nil {
				return nil // less, and better than nothing
			}
			return err
		}
	}
}

// ids are the target's: by the kubelet's word, else by what the pod asks for, else read by
// a first container of another user.
func (a *Asker) ids(ctx context.Context, pod *core.Pod, target *core.Container) (*userIDs, error) {
	if ids, ok := knownIDs(pod, target); ok {
		return &ids, nil
	}
	c := a.container(pod, target.Name, nil)
	c.Args = []string{"ids"}
	if err := a.add(ctx, pod, c); err != nil {
		return nil, err
	}
	if err := a.until(ctx, pod, c, func(s *core.ContainerStatus) bool {
		return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	}); err != nil {
		return nil, err
	}
	out, err := a.client.Log(ctx, pod.Namespace, pod.Name, c.Name)
	if err != nil {
		return nil, err
	}
	ids, err := Decode[userIDs](out)
	if err != nil {
		return nil, fmt.Errorf("container %s does not say which user the target runs as", c.Name)
	}
	return ids, nil
}

// knownIDs are the container's user and group, where both are known.
func knownIDs(pod *core.Pod, target *core.Container) (ids userIDs, ok bool) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == target.Name && s.User != nil && s.User.Linux != nil { // Kubernetes 1.33, containerd 2
			return userIDs{s.User.Linux.UID, s.User.Linux.GID}, true
		}
	}
	var uid, gid *int64
	if s := pod.Spec.SecurityContext; s != nil {
		uid, gid = s.RunAsUser, s.RunAsGroup
	}
	if s := target.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			uid = s.RunAsUser
		}
		if s.RunAsGroup != nil {
			gid = s.RunAsGroup
		}
	}
	if uid == nil || gid == nil {
		return ids, false
	}
	return userIDs{*uid, *gid}, true
}
