package sockdiag

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Groups of linux/sock_diag.h: TCP sockets as the kernel frees them.
const (
	groupInetTCPDestroy  = 1 // SKNLGRP_INET_TCP_DESTROY
	groupInet6TCPDestroy = 3 // SKNLGRP_INET6_TCP_DESTROY
)

// Refusals hears of the clients of a network namespace that were refused by a reset, as the kernel frees their sockets. It is
// not safe for concurrent use.
type Refusals struct{ sock transport }

// ListenRefusals hears of the calling thread's namespace, from now on. It needs no privilege. The kernel makes a message for each
// socket that it frees meanwhile, whether it is to be heard of or not: 1.7 µs of CPU time each.
func ListenRefusals() (*Refusals, error) {
	sock, _, err := openTransport()
	if err != nil {
		return nil, wrap("listen", err)
	}
	r := &Refusals{sock: sock}
	if err := errors.Join(narrow(sock.fd), r.Resume()); err != nil {
		return nil, errors.Join(wrap("listen", err), sock.close())
	}
	return r, nil
}

// Rest has the kernel make no more messages, until Resume.
func (r *Refusals) Rest() error { return r.member(unix.NETLINK_DROP_MEMBERSHIP) }

// Resume hears of the sockets that are freed from now on, from whatever thread.
func (r *Refusals) Resume() error { return r.member(unix.NETLINK_ADD_MEMBERSHIP) }

func (r *Refusals) member(option int) error {
	for _, group := range []int{groupInetTCPDestroy, groupInet6TCPDestroy} {
		if err := unix.SetsockoptInt(r.sock.fd, unix.SOL_NETLINK, option, group); err != nil {
			return wrap("listen", err)
		}
	}
	return nil
}

func narrow(fd int) error {
	program := refusedFilter()
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, refusedBuffer)
}

// refusedBuffer is what messages that nobody has read may take (the kernel allows net.core.rmem_max, which holds some hundred).
const refusedBuffer = 1 << 20

// refusedFilter is Socket.Refused in BPF, without what depends on the length of what a kernel reports.
func refusedFilter() []unix.SockFilter {
	const (
		attrs = nlmsgHeaderLen + diagMsgLen
		info  = attrs + 8              // behind INET_DIAG_PROTOCOL
		tcp   = info + attrHeaderLen   // struct tcp_info
		state = nlmsgHeaderLen + 1     // idiag_state
		dport = nlmsgHeaderLen + 4 + 2 // id.idiag_dport
	)
	load := func(size uint16, at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_ABS | size, K: at}
	}
	equals := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	kind := uint32(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, diagInfo))) // BPF loads as on the wire
	return []unix.SockFilter{
		load(unix.BPF_B, state), equals(uint32(Close), 0, 9),
		load(unix.BPF_H, dport), equals(0, 7, 0),
		load(unix.BPF_H, info+2), equals(kind, 0, 4), // elsewhere it is for Refused alone
		load(unix.BPF_W, tcp+68), equals(0, 0, 3), // tcpi_rtt
		load(unix.BPF_W, tcp+140), equals(0, 1, 0), // tcpi_segs_in
		{Code: unix.BPF_RET | unix.BPF_K, K: ^uint32(0)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// Read calls fn for the sockets of refused clients since the last time, as many as wait at most; the socket is reused. missed: there were
// more than the kernel kept.
func (r *Refusals) Read(fn func(*Socket)) (missed bool, err error) {
	var buffer [1024]byte
	var s Socket
	for range mostRefusals {
		n, err := unix.Read(r.sock.fd, buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return missed, nil
		case errors.Is(err, unix.ENOBUFS):
			missed = true
			continue
		case err != nil:
			return missed, wrap("listen", err)
		}
		m, _, err := nextMessage(buffer[:n])
		if err != nil {
			return missed, wrap("listen", err)
		}
		if m.typ == sockDiagByFamily && s.decode(m.body) == nil && s.Refused() {
			fn(&s)
		}
	}
	return missed, nil
}

// mostRefusals are read at once, more than the buffer holds.
const mostRefusals = 4096

// Close ends it.
func (r *Refusals) Close() error {
	if err := r.sock.close(); err != nil {
		return wrap("close", err)
	}
	return nil
}
