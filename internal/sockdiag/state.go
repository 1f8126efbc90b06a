package sockdiag

import "strconv"

// State is a socket's TCP state with the kernel's numbers (net/tcp_states.h).
type State uint8

// The states. The kernel's TCP_NEW_SYN_RECV (12), a request socket that is not
// yet a connection, is asked for and reported as SynRecv.
const (
	Established State = iota + 1
	SynSent
	SynRecv
	FinWait1
	FinWait2
	TimeWait
	Close
	CloseWait
	LastAck
	Listen
	Closing
)

// String is the kernel's name without its TCP_ prefix.
func (s State) String() string {
	names := [...]string{
		Established: "ESTABLISHED", SynSent: "SYN_SENT", SynRecv: "SYN_RECV",
		FinWait1: "FIN_WAIT1", FinWait2: "FIN_WAIT2", TimeWait: "TIME_WAIT",
		Close: "CLOSE", CloseWait: "CLOSE_WAIT", LastAck: "LAST_ACK",
		Listen: "LISTEN", Closing: "CLOSING",
	}
	if s == 0 || int(s) >= len(names) {
		return "STATE_" + strconv.Itoa(int(s))
	}
	return names[s]
}

// mask is the state's bit in idiag_states.
func (s State) mask() uint32 { return 1 << s }

// States is a set of states to ask for (idiag_states).
type States uint32

// Connected are the states of a server's end of a connection. With
// TCP_SYN_RECV the kernel also selects the request sockets (inet_diag adds
// TCPF_NEW_SYN_RECV); CLOSE and LISTEN are left out, they have no peer.
func Connected() States {
	return States(Established.mask() | SynRecv.mask() | FinWait1.mask() | FinWait2.mask() |
		TimeWait.mask() | CloseWait.mask() | LastAck.mask() | Closing.mask())
}

// Without leaves a state out: the kernel then passes over its sockets without
// looking at their ports.
func (s States) Without(left State) States { return s &^ States(left.mask()) }

// With takes a state along.
func (s States) With(more State) States { return s | States(more.mask()) }
