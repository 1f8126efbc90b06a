package deployments

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// hosts are pods between which and their clients a host stands: its rules are in another network namespace
// than the one that is looked at.
func hosts() []deployment {
	const published, service, pod = "10.66.0.1:80", "10.96.0.10:80", "10.77.0.1:8080"
	return []deployment{
		{"a published port (the host translates addresses), 10 connections of 10 taken, seen from the pod", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxConnections=10", "acceptCount=5", "maxThreads=20")
			c.Answers("127.0.0.1:8080")
			away(c, `table ip docker { chain come { type nat hook prerouting priority -100; tcp dport 80 dnat to `+pod+`; }; }`)
			c.Program("ip", "netns", "exec", "away", "python3", "-c", `import socket, threading, time
def ask():
    while True:
        try:
            s = socket.create_connection(("10.66.0.1", 80), 3); s.sendall(b"GET /?ms=600000 HTTP/1.1\r\nHost: x\r\n\r\n"); s.recv(1)
        except OSError: time.sleep(.1)
for _ in range(40): threading.Thread(target=ask).start()`)
			c.Until("the connections are taken", func() bool { return s.Says(rig.Port).Connections >= 10 })
			c.Wait(3 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 40 clients at the host's port 80"
			c.Both(rig.Port, "losing max_connections").Silent("before_listener")
		}},
		{"a Service without endpoints: the host rejects, seen from the pod", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			try := away(c, `table ip services { chain come { type filter hook forward priority 0; ip daddr 10.96.0.10 tcp dport 80 reject with icmp type port-unreachable; }; }`)
			failed := keep(c, func() error { return try(service) })
			c.Until("clients are refused", func() bool { return failed.Load() > 3 })
			c.Row.Truth = fmt.Sprintf("%d clients refused by the host; none has come as far as the pod", failed.Load())
			c.Both(rig.Port, "ok").Names("no client has tried to connect in the last", "nobody_tried")
		}},
		{"the host drops the pod's answers, seen from the pod", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			try := away(c, `table ip docker {
				chain come { type nat hook prerouting priority -100; tcp dport 80 dnat to `+pod+`; };
				chain back { type filter hook forward priority 0; ip saddr 10.77.0.1 tcp sport 8080 counter drop; };
			}`)
			var failed []func() int64
			for range 10 {
				failed = append(failed, keep(c, func() error { return try(published) }).Load)
			}
			c.Until("clients give up", func() bool { return failed[0]() > 0 && failed[9]() > 0 })
			c.Row.Truth = "the host drops what comes back from the pod; " + s.Says(rig.Port).String()
			c.Both(rig.Port, "losing before_listener").Names("SYN-ACKs do not reach them").Silent("the place is unknown")
		}},
	}
}

// away is a client behind a host with these rules, both in network namespaces of their own: it asks an
// address of the host or of a Service.
func away(c *rig.Case, rules string) func(address string) error {
	c.Helper()
	c.Needs("nft")
	far(c, "") // the host
	c.Do("ip", "netns", "add", "away")
	c.AtEnd(func() { _ = exec.Command("ip", "netns", "delete", "away").Run() })
	c.Do("ip", "-n", "far", "link", "add", "port", "type", "veth", "peer", "name", "eth0", "netns", "away")
	c.Do("ip", "-n", "far", "address", "add", "10.66.0.1/24", "dev", "port")
	c.Do("ip", "-n", "far", "link", "set", "port", "up")
	c.Do("ip", "-n", "far", "route", "add", "10.96.0.0/16", "dev", "out")
	c.Do("ip", "-n", "away", "address", "add", "10.66.0.2/24", "dev", "eth0")
	c.Do("ip", "-n", "away", "link", "set", "eth0", "up")
	c.Do("ip", "-n", "away", "route", "add", "default", "via", "10.66.0.1")
	c.Do("ip", "route", "add", "10.66.0.0/24", "via", "10.77.0.2")
	c.Do("ip", "netns", "exec", "far", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	file := c.Write("host-rules", strings.ReplaceAll(rules, ";", ";\n"))
	c.Do("ip", "netns", "exec", "far", "nft", "-f", file)
	return func(address string) error {
		host, port, _ := strings.Cut(address, ":")
		return exec.CommandContext(c.Ctx, "ip", "netns", "exec", "away", "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port).Run()
	}
}
