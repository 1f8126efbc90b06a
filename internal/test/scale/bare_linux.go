package main

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/netns"
)

const (
	// bareFor is how long the bare requests are made.
	bareFor = 10 * time.Second
	// sampleEvery is the agent's default.
	sampleEvery = 10 * time.Millisecond
	// Constants of linux/sock_diag.h and linux/inet_diag.h.
	sockDiagByFamily = 20
	extMemory        = 1 << 6 // INET_DIAG_SKMEMINFO
	stateListen      = 1 << 10
)

// bare is the share of a core that the kernel takes for the samples alone: one
// send and one receive for each server, 100 times a second, the replies thrown
// away. No program that samples as often can take less.
func bare(servers []*server) (float64, error) {
	sockets, err := bareSockets(servers)
	defer func() {
		for _, fd := range sockets {
			_ = unix.Close(fd)
		}
	}()
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(timer) }()
	every := unix.NsecToTimespec(sampleEvery.Nanoseconds())
	if err := unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return 0, err
	}
	return barely(timer, sockets)
}

func barely(timer int, sockets []int) (float64, error) {
	request, buffer := exactRequest(port), make([]byte, 32<<10)
	before, _ := cputime.Thread()
	start := time.Now()
	for time.Since(start) < bareFor {
		if _, err := unix.Read(timer, buffer); err != nil {
			return 0, err
		}
		for _, fd := range sockets {
			if err := unix.Send(fd, request, 0); err != nil {
				return 0, err
			}
			if _, err := unix.Read(fd, buffer); err != nil {
				return 0, err
			}
		}
	}
	after, _ := cputime.Thread()
	return float64(after-before) / float64(time.Since(start)), nil
}

// bareSockets are connected to sock_diag, one in each server's namespace.
func bareSockets(servers []*server) (out []int, err error) {
	for _, s := range servers {
		err := netns.Do(netns.Path("/proc", s.PID()), func() error {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
			if err != nil {
				return err
			}
			out = append(out, fd)
			return unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		})
		if err != nil {
			return out, fmt.Errorf("bare requests: %w", err)
		}
	}
	return out, nil
}

// exactRequest is struct inet_diag_req_v2 for the listener [::]:port.
func exactRequest(port uint16) []byte {
	const header, body = unix.NLMSG_HDRLEN, 56
	b := make([]byte, header+body)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b[header], b[header+1], b[header+2] = unix.AF_INET6, unix.IPPROTO_TCP, extMemory
	binary.NativeEndian.PutUint32(b[header+4:], stateListen)
	binary.BigEndian.PutUint16(b[header+8:], port)
	for i := header + 48; i < len(b); i++ { // INET_DIAG_NOCOOKIE: any socket
		b[i] = 255
	}
	return b
}
