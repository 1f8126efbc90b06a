// Package ask finds who can answer for a pod, and asks: a sidecar in it, the agent of its
// node, else an ephemeral container that is added to it.
package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/api"
)

// Options are what a user may choose.
type Options struct {
	Via             kube.Way // "" for the first that answers
	Container       string   // only this container's listeners
	Ports           []int    // only these
	AgentsNamespace string   // where the node agents are
	Image           string   // of an ephemeral container
	Lifetime        time.Duration
	Patience        time.Duration // for an ephemeral container
	ThreadDump      bool
	// MostAdded is to how many pods an ephemeral container is added by one command that
	// did not ask for that.
	MostAdded int
}

// Asker asks for one command. Its methods may be called at the same time.
type Asker struct {
	client *kube.Client
	opt    Options
	log    io.Writer // for people: which way was taken

	agents func(context.Context) ([]core.Pod, error) // of the nodes
	said   answers                                   // of those agents
	mu     sync.Mutex
	added  int
	notes  []string // for people, of ways that did not work
}

// New asks by a client.
func New(client *kube.Client, opt Options, log io.Writer) *Asker {
	a := &Asker{client: client, opt: opt, log: log, said: answers{given: make(map[kube.Agent]*answer)}}
	a.Forget()
	return a
}

// Forget has the node agents looked for again: one is replaced now and then. Nobody may ask
// meanwhile.
func (a *Asker) Forget() {
	a.agents = once(func(ctx context.Context) ([]core.Pod, error) {
		return a.client.Pods(ctx, a.opt.AgentsNamespace, NodeAgents, "status.phase=Running")
	})
}

// atOnce is how many agents are asked at a time.
const atOnce = 8

// NodeAgents selects the agents of the chart and of the manifests.
const NodeAgents = agentLabel + "=" + containerName

const agentLabel = "app.kubernetes.io/name"

// once remembers the first result that is not the caller's impatience.
func once[T any](fn func(context.Context) (T, error)) func(context.Context) (T, error) {
	var mu sync.Mutex
	var done bool
	var value T
	var err error
	return func(ctx context.Context) (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			value, err = fn(ctx)
			done = ctx.Err() == nil
		}
		return value, err
	}
}

// Source answers for a pod, again and again.
type Source struct {
	Pod *core.Pod
	Way kube.Way
	By  string // in words: "the sidecar", "the agent of node-1"
	ask func(ctx context.Context) (*api.Snapshot, error)
}

// Snapshot is the pod's newest.
func (s *Source) Snapshot(ctx context.Context) (*api.Snapshot, error) { return s.ask(ctx) }

// errNone: a way is not there, which is no failure while another one is.
type errNone struct{ why string }

func (e *errNone) Error() string { return e.why }

// Open finds who answers for a pod, with its first answer.
func (a *Asker) Open(ctx context.Context, pod *core.Pod) (*Source, *api.Snapshot, error) {
	if err := a.askable(pod); err != nil {
		return nil, nil, fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, err)
	}
	ways := []kube.Way{a.opt.Via}
	if a.opt.Via == "" {
		ways = kube.Ways()
		if a.opt.ThreadDump { // a node agent is another user than the JVM
			ways = []kube.Way{kube.Sidecar, kube.Ephemeral}
		}
	}
	var reasons, failed []string
	var last error
	for _, way := range ways {
		source, first, err := a.by(ctx, way, pod)
		if err == nil {
			a.note(failed)
			return source, first, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		var none *errNone
		if last == nil || !errors.As(err, &none) || errors.As(last, &none) {
			last = a.withRole(err, way, pod.Namespace)
		}
		if !errors.As(err, &none) || a.opt.Via != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %v", way, err))
		}
		if _, denied := kube.Lacks(err); !denied && !errors.As(err, &none) { // who may not ask in a way knows it
			failed = append(failed, fmt.Sprintf("%s, which was tried before: %v", way, err))
		}
	}
	if len(reasons) > 1 { // the last one is in the error
		fmt.Fprintf(a.log, "tcpdiag: %s/%s: %s\n", pod.Namespace, pod.Name, strings.Join(reasons[:len(reasons)-1], "; "))
	}
	return nil, nil, fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, last)
}

// note says what is of interest though another way has answered, each once.
func (a *Asker) note(lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range lines {
		if !slices.Contains(a.notes, line) {
			a.notes = append(a.notes, line)
			fmt.Fprintln(a.log, "tcpdiag: "+line)
		}
	}
}

// askable holds that the pod is one that could have an answer, and has the container that is meant.
func (a *Asker) askable(pod *core.Pod) error {
	if kube.Windows(pod) {
		return errors.New("it is for Windows nodes: tcpdiag reads Linux's kernel")
	}
	if a.opt.Container == "" {
		return nil
	}
	c, err := kube.Container(pod, a.opt.Container, containerName)
	if err == nil && containerID(pod, c.Name) == "" {
		err = fmt.Errorf("container %s has not started yet", c.Name)
	}
	return err
}

func (a *Asker) by(ctx context.Context, way kube.Way, pod *core.Pod) (*Source, *api.Snapshot, error) {
	var source *Source
	var err error
	switch way {
	case kube.Sidecar:
		source, err = a.sidecar(pod)
	case kube.Node:
		source, err = a.node(ctx, pod)
	case kube.Ephemeral:
		source, err = a.ephemeral(ctx, pod)
	}
	if err != nil {
		return nil, nil, err
	}
	first, err := source.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	return source, first, nil
}

// Nothing is the error of an answer without a listener.
func (a *Asker) Nothing(s *Source) error {
	all := slices.DeleteFunc(kube.Running(s.Pod), func(name string) bool { return name == containerName })
	where, remedy := "in the pod", ""
	if c, err := kube.Container(s.Pod, a.opt.Container, containerName); err == nil && (s.Way == kube.Ephemeral || a.opt.Container != "") {
		where = "in container " + c.Name
		if len(all) > 1 {
			remedy = "-c takes one of " + strings.Join(all, ", ") + "; "
		}
	}
	return fmt.Errorf("%s/%s: %s has found no JVM that listens %s: %s--port takes a port on which something else does", s.Pod.Namespace, s.Pod.Name, s.By, where, remedy)
}

// Explained is an error with the Role that would have prevented it.
type Explained struct {
	err   error
	Role  string // the document
	Grant string // the command that binds it to somebody
}

func (e *Explained) Error() string { return e.err.Error() }
func (e *Explained) Unwrap() error { return e.err }

func (a *Asker) withRole(err error, way kube.Way, namespace string) error {
	return WithRole(err, way, namespace, a.opt.AgentsNamespace)
}

// WithRole adds the Role that a denied right is in.
func WithRole(err error, way kube.Way, namespace, agents string) error {
	denied, ok := kube.Lacks(err)
	if !ok {
		return err
	}
	if namespace == "" {
		namespace = "*"
	}
	role := kube.RoleOf(way)
	switch {
	case strings.Contains(denied.Error(), "pods/exec"):
		role = kube.RoleOfThreadDump()
	case strings.Contains(denied.Error(), "pods/portforward"):
		role = kube.RoleOfForward()
	case way == kube.Node && denied.Namespace() == agents:
		role, namespace = kube.RoleOfAgents(), agents
	}
	return &Explained{err, role.YAML(namespace), role.Grant(namespace)}
}

// sharedFor is how long an agent's answer serves others: an agent makes one a second.
const sharedFor = 500 * time.Millisecond

// answers are those that agents have just given.
type answers struct {
	mu    sync.Mutex
	given map[kube.Agent]*answer
}

// answer is an agent's latest, or why there is none.
type answer struct {
	mu   sync.Mutex
	at   time.Time
	body []byte
	err  error
}

// of is an agent's answer, which is asked for where the latest is too old. Who comes meanwhile
// waits for it.
func (s *answers) of(agent kube.Agent, ask func(kube.Agent) ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	one := s.given[agent]
	if one == nil {
		one = new(answer)
		s.given[agent] = one
	}
	s.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if time.Since(one.at) > sharedFor {
		one.body, one.err = ask(agent)
		one.at = time.Now()
	}
	return one.body, one.err
}
