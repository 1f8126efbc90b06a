package threaddump

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds on what is kept of a thread dump.
const (
	maxGroups = 24   // that are passed on
	maxAnswer = 1024 // of the answer
	maxShown  = 24   // frames of a group
)

// request recognises the threads that handle a server's requests, by the names that
// Tomcat (AbstractEndpoint.createExecutor, StandardThreadExecutor,
// VirtualThreadExecutor), Spring Boot (TomcatVirtualThreadsWebServerFactoryCustomizer), Jetty
// (QueuedThreadPool) and Undertow (XnioWorker) give them.
var handler = regexp.MustCompile(`^(?:(?:http|https|ajp)-.*-exec-\d+|(?:tomcat|catalina)-exec-\d+|tomcat-handler-\d+|(?:http|https|ajp)-.*-virt-\d+|qtp-?\d+-\d+|XNIO-\d+ task-\d+)$`)

// groupKey is what the threads of a group have in common.
type groupKey struct {
	worker, idle         bool
	state                string
	library, application string
}

// groups adds threads up.
type groups struct {
	kinds   frameKinds
	byKey   map[groupKey]*model.StackGroup
	stacks  model.Stacks
	virtual bool    // the JVM has, or had, virtual threads
	mounted *groups // of those that were on a carrier, where they are kept apart
}

func newGroups() *groups {
	return &groups{kinds: newFrameKinds(), byKey: make(map[groupKey]*model.StackGroup)}
}

// platformGroups keep the virtual threads of a thread dump apart.
func platformGroups() *groups {
	g := newGroups()
	g.mounted = newGroups()
	return g
}

// add takes a thread. Threads of the JVM without a frame (compilers, the signal
// dispatcher) are no part of it, nor are the carriers' own frames.
func (g *groups) add(t *thread) {
	if t.virtual && g.mounted != nil {
		g.mounted.add(t)
		return
	}
	g.virtual = g.virtual || t.carrier || bytes.HasPrefix(t.name, []byte("VirtualThread-")) || bytes.HasPrefix(t.name, []byte("ForkJoinPool-1-worker-"))
	if t.carrier {
		g.stacks.Carriers++
		return
	}
	if len(t.frames) == 0 {
		return
	}
	g.stacks.Threads++
	at := groupKey{worker: handler.Match(t.name), idle: idle(t.frames), state: t.state}
	at.library, at.application = g.kinds.entered(t.frames)
	if at.worker {
		g.stacks.Workers++
	}
	if t.virtual {
		g.stacks.Virtual++
	}
	group := g.byKey[at]
	switch {
	case group != nil:
	case len(g.byKey) == maxAnswer:
		g.stacks.Others++
		return
	default:
		group = &model.StackGroup{
			Worker: at.worker, Idle: at.idle, State: at.state, Library: at.library, Application: at.application,
			Frames: slices.Clone(t.frames[:min(len(t.frames), maxShown)]),
		}
		g.byKey[at] = group
	}
	group.Threads++
}

// idle: they wait for their pool's next task.
func idle(frames []string) bool {
	return slices.ContainsFunc(frames, func(f string) bool {
		return strings.HasSuffix(f, ".ThreadPoolExecutor.getTask") || strings.HasSuffix(f, ".QueuedThreadPool.idleJobPoll") ||
			strings.HasSuffix(f, ".ReservedThreadExecutor$ReservedThread.reservedWait") ||
			f == "java.util.concurrent.ForkJoinPool.awaitWork" || f == "org.jboss.threads.EnhancedQueueExecutor$ThreadBody.run" && strings.HasSuffix(frames[min(1, len(frames)-1)], ".park")
	})
}

// merge adds virtual threads.
func (g *groups) merge(v *groups) {
	g.stacks.Threads += v.stacks.Threads
	g.stacks.Workers += v.stacks.Workers
	g.stacks.Virtual += v.stacks.Virtual
	g.stacks.Others += v.stacks.Others
	g.stacks.Cut = g.stacks.Cut || v.stacks.Cut
	for at, group := range v.byKey {
		if known := g.byKey[at]; known != nil {
			known.Threads += group.Threads
		} else {
			g.byKey[at] = group
		}
	}
}

// result is what was added up: the servers' threads first, busy ones before idle
// ones, then the groups of most threads.
func (g *groups) result() model.Stacks {
	out := g.stacks
	for _, group := range g.byKey {
		out.Groups = append(out.Groups, *group)
	}
	slices.SortFunc(out.Groups, func(a, b model.StackGroup) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)), -cmp.Compare(a.Threads, b.Threads),
			strings.Compare(a.Application, b.Application), strings.Compare(a.Library, b.Library), strings.Compare(a.State, b.State))
	})
	for _, beyond := range out.Groups[min(len(out.Groups), maxGroups):] {
		out.Others += beyond.Threads
	}
	out.Groups = slices.Clip(out.Groups[:min(len(out.Groups), maxGroups)])
	return out
}

func rank(g *model.StackGroup) int {
	switch {
	case g.Busy():
		return 0
	case g.Worker:
		return 1
	case !g.Idle:
		return 2
	}
	return 3
}
