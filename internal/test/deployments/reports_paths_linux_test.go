package deployments

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// askers has ten clients of the other network namespace ask again and again; it returns how many were answered and how
// many were not, so far.
func askers(c *rig.Case, address string, patience float64, pause string) (counts func() (answered, failed int)) {
	host, port, _ := net.SplitHostPort(address)
	got := inFar(c, fmt.Sprintf(`import socket, threading, time
ok = bad = 0
def ask():
    global ok, bad
    while True:
        try:
            s = socket.create_connection((%q, %s), timeout=%g); s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            n = 0
            while d := s.recv(20000): n += len(d)
            if n > 0: ok += 1
            else: bad += 1
        except OSError: bad += 1
        print(ok, bad, flush=True); time.sleep(%s)
for i in range(10): threading.Thread(target=ask).start()`, host, port, patience, pause))
	return func() (answered, failed int) {
		_, _ = fmt.Sscan(got(), &answered, &failed)
		return answered, failed
	}
}

// mended waits until all clients are answered.
func mended(c *rig.Case, counts func() (answered, failed int)) {
	c.Helper()
	answered, _ := counts()
	c.Until("clients are answered with the step taken", func() bool { n, _ := counts(); return n > answered+20 })
	again, failed := counts()
	c.Until("all clients are", func() bool { n, _ := counts(); return n > again+50 })
	_, then := counts()
	c.Holds(then <= failed+10, "%d clients fail with the step taken", then-failed)
}

// ofPaths are reports of what becomes of packets on their way, in the server's network namespace and beyond.
func ofPaths() []report {
	return []report{
		{"C", "https://github.com/moby/moby/issues/17212", "the server's network namespace has no route back to the clients of another network: they time out", func(c *rig.Case) {
			c.AtEnd(c.SetSysctl(map[string]string{"net/ipv4/conf/all/rp_filter": "0"}))
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "10.88.0.2")
			c.SetSysctl(map[string]string{"net/ipv4/conf/near/rp_filter": "0"})
			near, err := net.InterfaceByName("near")
			c.Must(err)
			c.Do("ip", "-n", "far", "neighbour", "replace", "10.77.0.1", "lladdr", near.HardwareAddr.String(), "dev", "out")
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients give up", func() bool { _, failed := counts(); return failed >= 20 })
			c.Both(rig.Port, "losing before_listener").Names("no route", "ip route get").Silent("SYN queue", "acceptCount from", "Switch SYN cookies on", "the place is unknown")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; there is no route to 10.88.0.2, so no SYN-ACK leaves: answered and given up %d %d", s.Says(rig.Port), answered, failed)
			c.Do("ip", "route", "add", "10.88.0.2/32", "dev", "near")
			mended(c, counts)
			c.Row.Truth += "; with a route all are answered"
		}},
		{"C", "https://github.com/istio/istio/issues/11838", "a sidecar's redirection sends what comes to the application's port to another one, where nobody listens", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			nft(c, `table ip istio { chain inbound { type nat hook prerouting priority -100; iifname "near" tcp dport 8080 redirect to :15006; }; }`)
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients are refused", func() bool { _, failed := counts(); return failed >= 20 })
			c.Both(rig.Port, "losing before_listener").Names("were refused", "address translation").Silent("a firewall rule rejects them", "max_connections")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; sent on to port 15006, where nobody listens: answered and refused %d %d", s.Says(rig.Port), answered, failed)
			c.Do("nft", "flush", "ruleset")
			mended(c, counts)
			c.Row.Truth += "; without the redirection all are answered"
		}},
		{"C", "https://github.com/cilium/cilium/issues/15636", "a limit of what comes in at the interface (ingress) drops packets before TCP sees them", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			nft(c, `table netdev bandwidth { chain ingress { type filter hook ingress device "near" priority 0; tcp dport 8080 limit rate over 1/second burst 5 packets drop; }; }`)
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients give up", func() bool { _, failed := counts(); return failed >= 20 })
			c.Both(rig.Port, "losing before_listener").Names("tc -s").Silent("max_threads", "max_connections")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; a packet a second passes the interface: answered and given up %d %d", s.Says(rig.Port), answered, failed)
			c.Do("nft", "flush", "ruleset")
			mended(c, counts)
			c.Row.Truth += "; without it all are answered"
		}},
		{"C", "https://github.com/appleboy/scp-action/issues/172", "a firewall lets six connections in 30 s through (ufw limit), and drops the others", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			nft(c, `table inet ufw { chain input { type filter hook input priority 0; iifname "near" tcp dport 8080 ct state new limit rate over 12/minute burst 6 packets counter drop; }; }`)
			counts := askers(c, "10.77.0.1:8080", 2, ".1")
			c.Until("clients give up", func() bool { _, failed := counts(); return failed >= 20 })
			c.Both(rig.Port, "losing before_listener").Names("the netfilter rule inet ufw input handle").Silent("max_threads", "max_connections")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; 12 new connections a minute are let through: answered and given up %d %d", s.Says(rig.Port), answered, failed)
			c.Do("nft", "flush", "ruleset")
			mended(c, counts)
			c.Row.Truth += "; without the rule all are answered"
		}},
		{"C", "https://github.com/moby/moby/issues/31208", "what lies between forgets idle connections, and drops their packets: the next request gets no answer", func(c *rig.Case) {
			router(c, 4)
			at := c.Mark()
			serve := func(keepAlive string) (s *rig.Server, counts func() (answered, failed int)) {
				s = c.Boot("none", rig.JVM{}, "server.tomcat.keep-alive-timeout="+keepAlive)
				c.Answers("127.0.0.1:8080")
				return s, reusers(c, 6)
			}
			s, counts := serve("8s")
			c.Until("second requests fail, and the server ends connections", func() bool { _, failed := counts(); return failed >= 30 })
			c.Both(rig.Port, "warning").Names("seems to have forgotten", "server.tomcat.keep-alive-timeout", "now 8 s").Silent(`"server_resets"`, "gave up")
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; a router tracks a connection for 4 s, which is used again after 6 s: answered and failed %d %d", s.Says(rig.Port), answered, failed)
			c.UnwindTo(at)
			_, counts = serve("1s")
			c.Until("clients are answered with the step taken", func() bool { n, _ := counts(); return n > 60 })
			_, failed = counts()
			c.Holds(failed == 0, "%d clients fail with the step taken", failed)
			c.Row.Truth += "; with keep-alive-timeout=1s all are answered"
		}},
		{"C", "https://github.com/kubernetes/kubernetes/issues/76699", "a network that loses every fourth packet: connecting takes a second or three, some clients give up", func(c *rig.Case) {
			c.Needs("nft")
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			c.Do("ip", "netns", "exec", "far", "nft", `table inet path { chain in { type filter hook prerouting priority 0; numgen random mod 4 == 0 drop; }; chain out { type filter hook postrouting priority 0; numgen random mod 4 == 0 drop; }; }`)
			counts := askers(c, "10.77.0.1:8080", 4, ".02")
			c.Until("clients give up", func() bool { n, failed := counts(); return failed >= 10 && n > 50 })
			want := []string{"warning lossy_network", "losing lossy_network"}
			c.Ask(rig.Port, "--interval", "5s").Verdict(want...).Names("of the segments on open connections were sent again")
			text := c.Row.Said
			c.AskAgent(rig.Port, want...).Verdict(want...)
			text += " The agent: " + c.Row.Said
			answered, failed := counts()
			c.Row.Truth = fmt.Sprintf("%s; a quarter of the packets is lost both ways, patience 4 s: answered and given up %d %d; on a network that loses none all are answered", s.Says(rig.Port), answered, failed)
			c.Do("ip", "netns", "exec", "far", "nft", "flush", "ruleset")
			mended(c, counts)
			c.Ask(rig.Port, "--interval", "2s").Verdict("ok").Silent("lossy_network")
			c.Row.Said = text
		}},
		{"C", "https://github.com/firehol/firehol/issues/208", "connection tracking forgets idle connections, and a rule drops what is invalid: the next request gets no answer", func(c *rig.Case) {
			forgets(c, "5s", "ct state invalid counter drop", "seems to have forgotten")
		}},
		{"D", "https://github.com/kubernetes/kubernetes/issues/74839", "connection tracking forgets idle connections, and a rule rejects what is invalid with a reset", func(c *rig.Case) {
			forgets(c, "10m", "ct state invalid counter reject with tcp reset", "in front of their sockets")
		}},
	}
}

// router has clients come through another network namespace that tracks an idle connection for some seconds, and drops what
// is of none.
func router(c *rig.Case, seconds int) {
	c.Helper()
	c.Needs("nft")
	far(c, "")
	c.Do("ip", "netns", "add", "path")
	c.AtEnd(func() { _ = exec.Command("ip", "netns", "delete", "path").Run() })
	in := func(name string, args ...string) {
		c.Do(append([]string{"ip", "netns", "exec", name}, args...)...)
	}
	c.Do("ip", "-n", "far", "link", "set", "out", "netns", "path")
	in("path", "ip", "address", "add", "10.77.0.2/24", "dev", "out")
	in("path", "ip", "link", "set", "out", "up")
	in("path", "ip", "link", "add", "in", "type", "veth", "peer", "name", "out", "netns", "far")
	in("path", "ip", "address", "add", "10.78.0.1/24", "dev", "in")
	in("path", "ip", "link", "set", "in", "up")
	in("far", "ip", "address", "add", "10.78.0.2/24", "dev", "out")
	in("far", "ip", "link", "set", "out", "up")
	in("far", "ip", "route", "add", "default", "via", "10.78.0.1")
	c.Do("ip", "route", "add", "10.78.0.0/24", "via", "10.77.0.2")
	in("path", "nft", `table inet firewall { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }`)
	set := "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose"
	for _, name := range []string{"established", "close_wait", "fin_wait", "unacknowledged", "last_ack", "max_retrans"} {
		set += fmt.Sprintf("; echo %d >/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_%s", seconds, name)
	}
	in("path", "sh", "-c", set)
}

// reusers has ten clients of the other network namespace send two requests on a connection, the second after a pause, but
// not on one that the server has ended meanwhile.
func reusers(c *rig.Case, pause int) (counts func() (answered, failed int)) {
	got := inFar(c, fmt.Sprintf(`import select, socket, threading, time
ok = bad = 0
def ask():
    global ok, bad
    while True:
        s = None
        try:
            s = socket.create_connection(("10.77.0.1", 8080), timeout=2)
            for i in range(2):
                if select.select([s], [], [], 0)[0]: break
                s.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
                if not s.recv(20000): raise OSError("closed")
                ok += 1
                time.sleep(%d)
        except OSError: bad += 1
        if s: s.close()
        print(ok, bad, flush=True)
for i in range(10): threading.Thread(target=ask).start(); time.sleep(.2)`, pause))
	return func() (answered, failed int) {
		_, _ = fmt.Sscan(got(), &answered, &failed)
		return answered, failed
	}
}

// forgets is clients with connections that connection tracking forgets while they are idle, behind a rule for what is invalid.
func forgets(c *rig.Case, keepAlive, rule, said string) {
	c.Helper()
	c.AtEnd(c.FlushConntrack)
	s := c.Boot("none", rig.JVM{}, "server.tomcat.keep-alive-timeout="+keepAlive, "server.tomcat.max-keep-alive-requests=-1")
	c.Answers("127.0.0.1:8080")
	far(c, "")
	c.AtEnd(c.SetSysctl(map[string]string{"net/netfilter/nf_conntrack_tcp_loose": "0"}))
	nft(c, `table inet firewall { chain input { type filter hook input priority 0; iifname "near" `+rule+`; iifname "near" ct state established,new accept; }; }`)
	for _, name := range []string{"established", "close_wait", "fin_wait", "unacknowledged", "last_ack"} {
		path := "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_" + name
		old, err := os.ReadFile(path)
		c.Must(err)
		c.Must(os.WriteFile(path, []byte("1"), 0o600))
		c.AtEnd(func() { _ = os.WriteFile(path, old, 0o600) })
	}
	counts := reusers(c, 3)
	c.Until("second requests fail", func() bool { _, failed := counts(); return failed >= 30 })
	c.Both(rig.Port, "warning").Names(said, "the netfilter rule inet firewall input handle").Silent(`"server_resets"`)
	answered, failed := counts()
	c.Row.Truth = fmt.Sprintf("%s; tracked for 1 s, used again after 3 s (%s): answered and failed %d %d", s.Says(rig.Port), rule, answered, failed)
	c.Do("nft", "flush", "ruleset")
	c.Wait(7 * time.Second)
	_, before := counts()
	c.Wait(6 * time.Second)
	_, then := counts()
	c.Holds(then <= before+10, "%d clients fail without the rule", then-before)
}
