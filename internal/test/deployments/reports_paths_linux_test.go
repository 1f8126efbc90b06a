package deployments

import (
	"fmt"
	"net"

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
	}
}
