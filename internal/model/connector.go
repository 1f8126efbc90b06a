package model

import (
	"fmt"
	"strings"
	"time"
)

// SourceKind is the closed set of places a setting comes from, the metrics'
// source label.
type SourceKind string

// The kinds of source.
const (
	SourceDefault  SourceKind = "default"
	SourceFile     SourceKind = "file"
	SourceEnv      SourceKind = "env"
	SourceArgument SourceKind = "argument"
	SourceProperty SourceKind = "property" // -Dname=value
	SourceFlag     SourceKind = "flag"     // given to tcpdiag: its own --max-connections and the like, on the command line or in its configuration file
	SourceKernel   SourceKind = "kernel"   // the listener's Send-Q
	SourceActuator SourceKind = "actuator"
	SourceInferred SourceKind = "inferred" // seen in force, against what is configured
)

// Setting is a configured value and where it was found.
type Setting[T any] struct {
	Value T
	Kind  SourceKind
	// Source is for people: "env SERVER_TOMCAT_ACCEPT_COUNT",
	// "application.yml in app.jar, profile prod", "conf/server.xml line 71".
	Source string
	// Note says what a reader must know in addition to the value: a configured value
	// that the server ignores, or one that the kernel clamped.
	Note string
	// Uncertain: a source that would beat this one could not be read; the Note
	// says which.
	Uncertain bool
}

// Origin is where the value was found, in words; its kind where nobody has
// written any.
func (s *Setting[T]) Origin() string {
	if s.Source != "" {
		return s.Source
	}
	return string(s.Kind)
}

// Given reports whether the server itself says so, or somebody has set it: a default of its version is in
// force where nothing else is set that was overlooked, and what was inferred is no more than that.
func (s *Setting[T]) Given() bool {
	switch s.Kind {
	case SourceFile, SourceEnv, SourceArgument, SourceProperty, SourceFlag, SourceActuator:
		return true
	}
	return false
}

// Noted is a copy with one more note.
func (s *Setting[T]) Noted(note string) *Setting[T] {
	out := new(*s)
	out.Note = strings.TrimPrefix(out.Note+"; "+note, "; ")
	return out
}

// SharedPool is what the connectors of one Executor use of it together.
type SharedPool struct {
	Connectors int
	Busy       *int // threads that have a request; nil where one of the connectors does not show it
	Waiting    int  // requests that wait for a thread
}

// Connector is Tomcat's end of a listener. Settings that are not known are nil.
type Connector struct {
	Server           string // Server.Name
	Framework        string // "spring-boot", or "" for a standalone Tomcat
	Version          string // Tomcat's version
	FrameworkVersion string
	Protocol         string // first part of the thread names: http-nio, https-jsse-nio, ajp-nio
	TLS              bool   // phases are unknown: requests are not visible in the byte counts
	HTTP2            bool   // likewise
	Executor         string // name of a shared <Executor>, "" for the connector's own pool
	ExecutorUsers    int    // connectors of the process that have that one
	// Processes that share the address (SO_REUSEPORT), 0 for one alone: connections
	// and requests are counted of all of them, and the limits are those of all.
	Processes int

	MaxConnections       *Setting[int] // < 0: no limit
	AcceptCount          *Setting[int]
	MaxThreads           *Setting[int]
	MinSpareThreads      *Setting[int]
	MaxQueue             *Setting[int] // threads.max-queue-capacity, maxQueueSize
	MaxKeepAliveRequests *Setting[int]
	ConnectionTimeout    *Setting[time.Duration]
	KeepAliveTimeout     *Setting[time.Duration]
	VirtualThreads       *Setting[bool]

	// Gate is how many requests a SemaphoreValve lets through at a time, nil without one.
	Gate *Setting[int]

	// Backends are the servers that the same application's configuration names.
	Backends []Backend

	PoolThreads *int // worker threads alive, from the thread names
	// WithoutPoller: by their names the worker threads are there, and the one is not that
	// hands them the requests.
	WithoutPoller bool
	// Debugger: one is connected to the JVM, by the thread that reads its commands.
	Debugger bool
	// WorkerNames is how the names of its worker threads begin where that does not show the
	// port: the namePrefix of an Executor, "http-nio-127.0." with an address.
	WorkerNames string
	// Shared is the use of a shared Executor by all connectors that have it, nil
	// where this is the only one.
	Shared *SharedPool

	// Actuator's own figures, when it was asked.
	BusyThreads        *int      // tomcat.threads.busy
	BusyAt             time.Time // when it was asked for them: no verdict depends on it
	CurrentConnections *int      // tomcat.connections.current; reads one too many below the limit
}

// Times is the connector with the limits of that many processes, each with one like
// this: the kernel gives the connections of an address to all that share it.
func (c *Connector) Times(processes int) *Connector {
	if c == nil || processes < 2 {
		return c
	}
	all := *c
	all.Processes, all.PoolThreads = processes, nil // whose threads were counted are one's
	for _, s := range []**Setting[int]{&all.MaxConnections, &all.MaxThreads} {
		if *s != nil && (*s).Value > 0 {
			each := **s
			each.Note = fmt.Sprintf("%d in each of %d processes that share the port", each.Value, processes)
			each.Value *= processes
			*s = &each
		}
	}
	return &all
}

// AcceptsWithWorkers means that NIO2 has no acceptor thread, a worker takes the next connection
// (Nio2Endpoint.Nio2Acceptor): while all of them serve requests nobody accepts.
func (c *Connector) AcceptsWithWorkers() bool { return strings.HasSuffix(c.Protocol, "-nio2") }

// OnVirtualThreads reports whether requests are handled by virtual threads, of which there is no limit.
func (c *Connector) OnVirtualThreads() bool {
	return c.VirtualThreads != nil && c.VirtualThreads.Value
}

// KeepAlive is how long a connection may wait for its next request. Unset, it is
// connectionTimeout (AbstractProtocol.getKeepAliveTimeout); nil where neither is known.
func (c *Connector) KeepAlive() *Setting[time.Duration] {
	if c == nil {
		return nil
	}
	if c.KeepAliveTimeout != nil {
		return c.KeepAliveTimeout
	}
	return c.ConnectionTimeout
}
