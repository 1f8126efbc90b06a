package model

import (
	"slices"
	"strings"
	"time"
)

// Stacks are a thread dump's frames: what the threads of a JVM were doing at one
// moment, in groups of equal ones. There are no names of threads, no locks and no
// values in it.
type Stacks struct {
	At   time.Time     // when the answer had come
	Took time.Duration // from the request to the end of the answer

	Threads int // of Java
	Workers int // of them, those that handle a server's requests
	Groups  []StackGroup
	Others  int // threads of groups beyond the bound
	// Carriers of virtual threads. A virtual thread that waits has none.
	Carriers int
	// Virtual of the threads are virtual. VirtualShown: the JVM wrote down all of them
	// (Thread.dump_to_file), and not those alone that ran.
	Virtual      int
	VirtualShown bool
	Scheduler    *VirtualScheduler // nil where the JVM does not know, or has no virtual threads
	Deadlocked   bool              // the JVM found a deadlock
	Cut          bool              // the answer was longer than is read
}

// VirtualScheduler is what the JVM says of the carriers of its virtual threads (JDK 24's
// VirtualThreadSchedulerMXBean).
type VirtualScheduler struct {
	Parallelism int // virtual threads that can run at the same time
	Carriers    int // platform threads for them
	Mounted     int // virtual threads that have a carrier: they run, or wait and are pinned to it
	Queued      int // that could run, and wait for a carrier
}

// Starved reports whether virtual threads wait for a carrier while all are taken.
func (s *VirtualScheduler) Starved() bool {
	return s != nil && s.Queued > 0 && s.Mounted >= s.Parallelism
}

// StackGroup are threads that are in the same place.
type StackGroup struct {
	Threads int
	Worker  bool   // they handle a server's requests
	Idle    bool   // they wait for their pool's next task
	State   string // java.lang.Thread.State: "WAITING"; "" for a virtual thread on its carrier
	// Library is the method by which they entered the library or the part of the JDK
	// that they are in, Application the topmost method of neither the JDK nor a
	// known library, "" where there is none. They have no arguments.
	Library, Application string
	Frames               []string // of one of them, the innermost first, bounded
}

// Busy reports whether the threads work on requests.
func (g *StackGroup) Busy() bool { return g.Worker && !g.Idle }

// BusyGroup is the group of most threads that work on requests, nil where there is
// none.
func (s *Stacks) BusyGroup() *StackGroup {
	if s == nil {
		return nil
	}
	for i := range s.Groups { // the workers first, those of most threads first
		if s.Groups[i].Busy() {
			return &s.Groups[i]
		}
	}
	return nil
}

// ReadsRequest means that they wait for the rest of a request, as of an upload (org.apache.catalina.connector.InputBuffer).
func (g *StackGroup) ReadsRequest() bool { return g.in(".connector.InputBuffer.realReadBytes") }

// SendsResponse means that they wait until their clients take more of a response.
func (g *StackGroup) SendsResponse() bool { return g.in(".connector.OutputBuffer.realWriteBytes") }

func (g *StackGroup) in(method string) bool {
	return slices.ContainsFunc(g.Frames, func(f string) bool { return strings.HasSuffix(f, method) })
}

// Where is where the threads are, and who called it: "HikariDataSource.getConnection ←
// OrderService.find".
func (g *StackGroup) Where() string {
	where := ShortMethod(g.Library)
	if g.Application != "" && g.Application != g.Library {
		where += " ← " + ShortMethod(g.Application)
	}
	return where
}

// ShortMethod is a method with its class, without the package.
func ShortMethod(name string) string {
	method := strings.LastIndexByte(name, '.')
	if method < 0 {
		return name
	}
	return name[strings.LastIndexByte(name[:method], '.')+1:]
}

// Busy is how many threads work on requests.
func (s *Stacks) Busy() int {
	n := 0
	for i := range s.Groups {
		if s.Groups[i].Busy() {
			n += s.Groups[i].Threads
		}
	}
	return n
}
