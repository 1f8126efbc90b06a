package threads

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// The ways in which there is no acceptor thread to be read.
var (
	// ErrNoAcceptor: NIO2 has no such thread: any free worker takes the
	// next connection (Nio2Endpoint's completion handler), and waits at the
	// connection latch as idle workers wait for work.
	ErrNoAcceptor = errors.New("NIO2 has no acceptor thread")
	// ErrEnded: the connector's other threads are there, and the acceptor is not.
	ErrEnded = errors.New("the acceptor thread is not there")
	// ErrUnclear: several threads could be the acceptor, and none was in accept.
	ErrUnclear = errors.New("the acceptor thread cannot be distinguished from others")
)

// role is what a thread's name says of it.
type role int

const (
	roleNone     role = iota
	roleOther         // of a connector on another port
	roleBeside        // of a connector on the port: a worker or a poller
	rolePossible      // of a connector whose port is cut off
	roleNIO2          // of an NIO2 connector on the port
	roleOnPort        // of a connector on the port, its role cut off
	roleAcceptor      // Tomcat's "-Acceptor", or "-AsyncTimeout" of 8.5 and early 9.0
)

// acceptorRole reads a thread's name, which Tomcat makes of the protocol, the
// address, the port and the role (AbstractProtocol.getNameInternal) and the
// kernel cuts after 15 characters: "http-nio-8080-A", "http-nio-18080-",
// "https-jsse-nio-", "http-nio-127.0.".
func acceptorRole(comm string, port uint16) role {
	scheme, rest, _ := strings.Cut(comm, "-")
	if scheme != "http" && scheme != "https" && scheme != "ajp" {
		return roleNone
	}
	at, tail := portIn(rest)
	switch {
	case at == port && strings.Contains(comm, "-nio2-"):
		return roleNIO2
	case at == port && tail == "":
		return roleOnPort
	case at == port && tail[0] == 'A':
		return roleAcceptor
	case at == port && strings.ContainsRune("ePC", rune(tail[0])):
		return roleBeside
	case at != 0:
		return roleOther
	case len(comm) < commLength:
		return roleNone
	}
	return rolePossible
}

// commLength is what the kernel keeps of a thread's name (TASK_COMM_LEN less
// its terminating zero).
const commLength = 15

// portIn is the port in what follows the scheme, and what follows the port: "A"
// in "nio-8080-A". It is 0 where none is whole, as in "nio-127.0."; five digits
// at the end are one, "nio2-18080".
func portIn(rest string) (port uint16, tail string) {
	for rest != "" {
		part, more, dashed := strings.Cut(rest, "-")
		if n, err := strconv.ParseUint(part, 10, 16); err == nil && (dashed || len(part) == 5) {
			return uint16(n), more
		}
		rest = more
	}
	return 0, ""
}

// candidate is a thread that may be the acceptor.
type candidate struct {
	tid     int
	started uint64 // field 22 of stat
	role    role
	call    Call
	ours    bool // its Call is accept on the listening socket
}

// chooseAcceptor picks the acceptor among the threads of one process, of which
// the calls were read where they could be. sure: a connector whose port is cut
// off the names can only be the one that is looked for.
func chooseAcceptor(all []candidate, sure bool) (tid int, err error) {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.tid, b.tid))
	})
	for _, c := range all {
		if c.ours {
			return c.tid, nil
		}
	}
	// AsyncTimeout starts after the acceptor (AbstractProtocol.start).
	if named := withRole(all, roleAcceptor); len(named) > 0 {
		return named[0].tid, nil
	}
	if len(withRole(all, roleNIO2)) > 0 {
		return 0, ErrNoAcceptor
	}
	if len(withRole(all, roleBeside)) > 0 {
		return 0, ErrEnded
	}
	if nobodyListens(all) {
		return 0, ErrEnded
	}
	if onPort := withRole(all, roleOnPort); len(onPort) > 0 || !sure {
		return afterPoller(onPort)
	}
	possible := withRole(all, rolePossible)
	alone := slices.DeleteFunc(slices.Clone(possible), func(c candidate) bool {
		return c.call.Kind == CallAccept // on another socket
	})
	if tid, err = afterPoller(alone); errors.Is(err, ErrEnded) && len(alone) < len(possible) {
		return 0, ErrUnclear
	}
	return tid, err
}

// nobodyListens: the calls of all threads were read, no name may be this connector's, and none but other connectors'
// threads waits for anything to come: the port was opened before the server runs, or the connector has not started.
func nobodyListens(all []candidate) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(c candidate) bool {
		if c.role == roleOther {
			return false
		}
		switch c.call.Kind {
		case CallAccept, CallPoll, CallEpoll, CallUnknown:
			return true
		}
		return c.role != roleNone
	})
}

func withRole(all []candidate, r role) []candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.role != r })
}

// afterPoller is the thread made right after the connector's pollers
// (NioEndpoint.startInternal; 8.5 has up to two): the workers that are ready at
// the start were made before them, all others later. A poller waits in epoll. Where such workers are there and nothing follows
// the pollers, it has ended; threads that all wait in epoll are another server's.
func afterPoller(all []candidate) (tid int, err error) {
	polls := func(c candidate) bool { return c.call.Kind == CallEpoll }
	first := slices.IndexFunc(all, polls)
	if first < 0 {
		return 0, ErrUnclear
	}
	next := first
	for next < len(all) && polls(all[next]) {
		next++
	}
	switch {
	case next == len(all) && first > 0 && next-first <= mostPollers:
		return 0, ErrEnded
	case next == len(all), slices.ContainsFunc(all[next:], polls): // further on are another connector's, whose name was cut alike
		return 0, ErrUnclear
	}
	return all[next].tid, nil
}

// mostPollers is how many a connector has.
const mostPollers = 2

// explained reports whether some thread's name holds each of the ports.
func explained(ports []uint16, named map[uint16]bool) bool {
	for _, port := range ports {
		if !named[port] {
			return false
		}
	}
	return true
}

// parseStarted takes field 22 of stat. The name in field 2 may hold anything,
// parentheses too.
func parseStarted(stat []byte) (uint64, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	const after = 22 - 3 // the state, field 3, is the first of them
	if end < 0 || len(fields) <= after {
		return 0, fmt.Errorf("stat %q: %w", stat, hostproc.ErrMalformed)
	}
	n, ok := procfile.Decimal(fields[after])
	if !ok {
		return 0, fmt.Errorf("stat %q: %w", stat, hostproc.ErrMalformed)
	}
	return uint64(n), nil
}
