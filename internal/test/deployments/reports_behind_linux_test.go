package deployments

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofLeftovers are reports of servers that are gone, or whose threads are, though the port is open and the connections show nothing.
func ofLeftovers() []report {
	return []report{
		{"A", "https://github.com/StarRocks/starrocks/pull/76491", "a crashed server writes a large core dump: its port stays open meanwhile, and clients hang", func(c *rig.Case) {
			const pattern = "/proc/sys/kernel/core_pattern"
			before, err := os.ReadFile(pattern)
			c.Must(err)
			again := func() { _ = os.WriteFile(pattern, before, 0o600) }
			c.AtEnd(again)
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "acceptCount=20")
			c.Answers("127.0.0.1:8080")
			if err := os.WriteFile(pattern, []byte("|/bin/sleep 90"), 0o600); err != nil { // takes the dump, and reads nothing of it
				c.Skips("kernel.core_pattern cannot be set: %v", err)
			}
			c.Must(syscall.Kill(s.PID, syscall.SIGABRT))
			c.Wait(time.Second)
			again()
			clients := c.Hold(rig.Clients{N: 12, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 12 })
			c.Wait(2 * time.Second)
			c.Row.Truth = fmt.Sprintf("SIGABRT, and what takes the core dump reads nothing: 12 of 12 clients connected, %d answered", clients.Answered.Load())
			c.Both(rig.Port, "saturated jvm_pause").Names("has crashed, and its core dump is being written", "hs_err_pid", "kill -KILL").Silent("safepoint)", "larger heap", "kill -CONT")
			c.Must(syscall.Kill(s.PID, syscall.SIGKILL))
			c.Until("the port is closed with the step taken", func() bool { return !c.Connects(rig.Port) })
			c.Row.Truth += "; SIGKILL ends it at once"
		}},
		{"H", "https://github.com/oracle/docker-images/issues/1051", "the access log's pipe is full: clients have their answers, and the threads stand behind them, until none is left", func(c *rig.Case) {
			fifo := filepath.Join(c.Dir, "access.log")
			c.Must(syscall.Mkfifo(fifo, 0o600))
			unread, err := os.OpenFile(fifo, os.O_RDWR, 0)
			c.Must(err)
			c.AtEnd(func() { _ = unread.Close() })
			if _, _, no := syscall.Syscall(syscall.SYS_FCNTL, unread.Fd(), 1031, 4096); no != 0 { // F_SETPIPE_SZ
				c.Must(no)
			}
			home := c.Distribution(rig.Tomcat10)
			valve := fmt.Sprintf(`<Valve className="org.apache.catalina.valves.AccessLogValve" directory=%q prefix="access" suffix=".log" rotatable="false" buffered="false" pattern="%%r %s"/>`, c.Dir, long)
			s := c.Catalina(home, c.Base(home, `<Server port="-1"><Service name="Catalina">
<Connector port="8080" maxThreads="200"/>
<Engine name="Catalina" defaultHost="localhost">`+valve+`<Host name="localhost" appBase="webapps"/></Engine></Service></Server>
`), rig.JVM{})
			c.Answers("127.0.0.1:8080")
			answered := 0
			c.Until("all threads are busy", func() bool { // each leaves as it has its answer
				if visited(c) == nil {
					answered++
				}
				return s.Says(rig.Port).Busy >= 200
			})
			c.Hold(rig.Clients{N: 6, Text: rig.Get("/slow.jsp?ms=0")})
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; %d clients were answered, one thread is in write(2) of their lines, the others wait for its lock", s.Says(rig.Port), answered)
			c.Both(rig.Port, "saturated max_threads").Names("write").Silent("have no request", "poller thread is there", "maxThreads from 200", "OutOfMemoryError")
		}},
		{"C", "https://github.com/dragonflydb/dragonfly-operator/issues/426", "a server that ends and starts again and again: clients are refused for most of the time, and reset as it ends", func(c *rig.Case) {
			c.Program("python3", "-c", `import socket, time
while True:
    s = socket.create_server(("0.0.0.0", 8080), backlog=100); s.settimeout(.1); end = time.time() + 1
    while time.time() < end:
        try: x, _ = s.accept(); x.recv(1000); x.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"); x.close()
        except OSError: pass
    s.close(); time.sleep(4)`)
			far(c, "")
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients are refused", func() bool { _, failed := counts(); return failed >= 200 })
			c.Both(rig.Port, "down no_listener", "down listener_closed", "losing", "losing listener_closed").Names("refused").Silent(`"server_resets"`, "max_threads", "a firewall rule rejects")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("it listens for 1 of 5 s: %d answered, %d refused or reset", answered, failed)
		}},
	}
}

// long makes a line of the access log longer, whose pipe is full the sooner.
const long = "----------------------------------------------------------------------------------------------------------------"

// visited asks once, and leaves when it has something.
func visited(c *rig.Case) error {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(c.Ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err = conn.Write([]byte(rig.Get("/slow.jsp?ms=0"))); err == nil {
		_, err = conn.Read(make([]byte, 1000))
	}
	return err
}

// ofFilters are reports of what keeps packets from a listener, or its answers from clients, that no rule counts.
func ofFilters() []report {
	return []report{
		{"C", "https://github.com/lyft/cni-ipvlan-vpc-k8s/issues/70", "the server's machine knows no way to its clients on its own network (ARP fails): they time out", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			near, err := net.InterfaceByName("near")
			c.Must(err)
			c.Do("ip", "-n", "far", "link", "set", "out", "arp", "off")
			c.Do("ip", "-n", "far", "neighbour", "replace", "10.77.0.1", "lladdr", near.HardwareAddr.String(), "dev", "out")
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients give up", func() bool { _, failed := counts(); return failed >= 20 })
			c.Wait(3 * time.Second)
			said := c.Ask(rig.Port, "--interval", "5s").Verdict("losing before_listener")
			text := c.Row.Said
			all := said.All + c.AskAgent(rig.Port, "losing before_listener").Verdict("losing before_listener").All
			c.Row.Said, said.All = text+" The agent: "+c.Row.Said, all
			said.Names("ARP", "ip neigh").Silent("SYN queue", "acceptCount from", "no route back", "the place is unknown")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; nobody answers ARP for 10.77.0.2: answered and given up %d %d", s.Says(rig.Port), answered, failed)
			c.Do("ip", "-n", "far", "link", "set", "out", "arp", "on")
			mended(c, counts)
			c.Row.Truth += "; with ARP all are answered"
		}},
		{"C", "https://github.com/systemd/systemd/pull/6764", "a packet filter at the server's socket or cgroup (eBPF, as of systemd's IPAddressDeny) drops what comes: clients time out", func(c *rig.Case) {
			c.Program("python3", "-c", `import ctypes, socket, struct
s = socket.create_server(("0.0.0.0", 8080), backlog=100)
drop = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0)) # return 0: nothing of a packet is let through
s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxP", 1, ctypes.addressof(drop))) # SO_ATTACH_FILTER
while True: s.accept()`)
			far(c, "")
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients give up", func() bool { _, failed := counts(); return failed >= 20 })
			c.Ask(rig.Port).Verdict("losing before_listener")
			c.Ask(rig.Port, "--interval", "4s").Verdict("losing before_listener").Names("IPAddressDeny", "ListenDrops +0", "bpftool cgroup tree").Silent("SYN queue", "the place is unknown")
			text := c.Row.Said
			c.AskAgent(rig.Port, "losing before_listener").Verdict("losing before_listener").Names("IPAddressDeny").Silent("SYN queue") // which looks at a second, with packets in it or without
			c.Row.Said = text + " The agent: " + c.Row.Said
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("a filter of the listening socket drops all: answered and given up %d %d", answered, failed)
		}},
	}
}
