package draws

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// fault is what goes wrong: begun before the clients come or while they are there, and
// ended when tcpdiag has been asked.
type fault struct {
	before, begin, end func(*world)
	spoils             bool // the server: the next draw has a new one
	fresh              bool // it takes a new one
}

func (d draw) faultOf() fault {
	switch d.fault {
	case "pause":
		return fault{
			begin: func(w *world) { w.Must(syscall.Kill(w.s.PID, syscall.SIGSTOP)) },
			end:   func(w *world) { w.Must(syscall.Kill(w.s.PID, syscall.SIGCONT)) },
		}
	case "filter that counts":
		return filter("counter drop")
	case "filter without a counter":
		return filter("drop")
	case "filter of every second SYN":
		return filter("numgen random mod 2 0 counter drop")
	case "filter of more than 5 connections":
		return filter("ct count over 5 counter drop")
	case "filter that rejects":
		return filter("counter reject with tcp reset")
	case "conntrack full":
		return fault{before: tracked, begin: func(w *world) { w.FillConntrack(0) }, end: func(w *world) { w.FlushConntrack() }}
	case "quota":
		return fault{
			begin: func(w *world) { w.Quota(w.s, "0.03") },
			end:   func(w *world) { w.Quota(w.s, "10") },
		}
	case "descriptors":
		return fault{
			begin: func(w *world) { prlimit(w, "nofile", openFiles(w.s.PID)+3) },
			end:   func(w *world) { prlimit(w, "nofile", 4096) },
		}
	case "processes":
		return fault{fresh: true, spoils: true, before: func(w *world) { prlimit(w, "nproc", w.s.Threads()+2) }}
	case "second instance":
		return fault{before: decoy}
	case "restart":
		return fault{begin: func(w *world) { w.ends(w.s.PID) }, end: (*world).start}
	case "dead acceptor", "dead poller":
		name := map[string]string{"dead acceptor": "Acceptor", "dead poller": "Poller"}[d.fault]
		return fault{spoils: true, before: func(w *world) { w.kill(name) }}
	}
	return fault{}
}

// filter is a rule in front of the listener, in its own namespace.
func filter(what string) fault {
	return fault{
		begin: func(w *world) {
			w.Do("nft", "add table inet drawn; add chain inet drawn in { type filter hook input priority 0; }; add rule inet drawn in tcp dport "+strconv.Itoa(rig.Port)+" tcp flags syn / syn,ack "+what)
		},
		end: func(w *world) { w.Do("nft", "delete table inet drawn") },
	}
}

// tracked has the kernel track what comes from beyond the namespace, and the clients come from there: what
// was sent over the loopback device is tracked where it leaves, and would be lost before anybody sees it.
func tracked(w *world) {
	w.far = newFar(w.Case)
	w.Do("nft", `table inet drawn {
		chain input { type filter hook input priority 0; ct state established accept; };
		chain come { type filter hook prerouting priority raw; iifname "lo" notrack; };
		chain leave { type filter hook output priority raw; oifname "lo" notrack; };
	}`)
	w.FillConntrack(1000) // which takes seconds; those that come meanwhile have room
	w.later(func() {
		w.Do("nft", "delete table inet drawn")
		w.far.close()
		w.far = nil
	})
}

// prlimit is run as the server's user, which may do so where root lacks CAP_SYS_RESOURCE.
func prlimit(w *world, name string, n int) {
	args := []string{"prlimit", "--pid", strconv.Itoa(w.s.PID), fmt.Sprintf("--%s=%d:%d", name, n, 4096)}
	if w.draw.server.user == "app" {
		id := fmt.Sprint(uidOf(w.draw.number))
		args = append([]string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups"}, args...)
	}
	w.Do(args...)
}

// decoy is a server beside it that takes nothing: what the kernel counts of it is not the
// watched one's.
func decoy(w *world) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	w.Must(err)
	w.later(func() { _ = syscall.Close(fd) })
	w.Must(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	w.Must(syscall.Bind(fd, &syscall.SockaddrInet4{Port: rig.Port + 1, Addr: [4]byte{127, 0, 0, 1}}))
	w.Must(syscall.Listen(fd, 2))
	for range 10 {
		go func() {
			if conn, err := net.DialTimeout("tcp", fmt.Sprint("127.0.0.1:", rig.Port+1), 8*time.Second); err == nil {
				time.Sleep(8 * time.Second)
				_ = conn.Close()
			}
		}()
	}
}

// kill ends a thread of the connector.
func (w *world) kill(name string) {
	if strings.HasPrefix(w.draw.server.version, "8.5") && name == "Poller" {
		name = "ClientPoller-0"
	}
	v := w.visitor()
	v.ask("die&thread=" + name)
	v.connection(w.Ctx) // has its answer, or has not
	w.Wait(100 * time.Millisecond)
}
