package deployments

import (
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// front are servers with room whose clients do not reach the listener, or ask for another one.
func front() []deployment {
	lost := func(name, truth string, stop func(c *rig.Case) func() error, names, silent []string) deployment {
		return deployment{name, func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			try := stop(c)
			var failed []func() int64
			for range 10 {
				failed = append(failed, keep(c, try).Load)
			}
			c.Until("clients give up", func() bool { return failed[0]() > 0 && failed[9]() > 0 })
			c.Row.Truth = truth + "; " + s.Says(rig.Port).String()
			c.Both(rig.Port, "losing before_listener").Names(names...).Silent(silent...)
		}}
	}
	ruled := func(rules string) func(c *rig.Case) func() error {
		return func(c *rig.Case) func() error {
			nft(c, rules)
			return func() error { return once("127.0.0.1:8080") }
		}
	}
	const unknown = "the place is unknown"
	return []deployment{
		lost("a netfilter rule with a counter drops the SYNs", "nftables drops them",
			ruled(`table inet firewall { chain input { type filter hook input priority 0; tcp dport 9 counter drop; tcp dport 8080 tcp flags syn counter drop; }; }`),
			[]string{"the netfilter rule inet firewall input handle", "nft -a list chain inet firewall input"}, []string{unknown}),
		lost("a netfilter rule without a counter drops the SYNs", "nftables drops them, and counts none",
			ruled(`table inet firewall { chain input { type filter hook input priority 0; tcp dport 9 counter drop; tcp dport 8080 tcp flags syn drop; }; }`),
			[]string{unknown}, []string{"the netfilter rule", "is full"}),
		lost("iptables drops the SYNs", "iptables (nf_tables) drops them", func(c *rig.Case) func() error {
			c.Needs("iptables-nft")
			c.Do("iptables-nft", "-A", "INPUT", "-p", "tcp", "--dport", "8080", "--syn", "-j", "DROP")
			c.AtEnd(func() { c.Do("iptables-nft", "-F", "INPUT") })
			return func() error { return once("127.0.0.1:8080") }
		}, []string{"the netfilter rule ip filter INPUT handle"}, []string{unknown}),
		lost("connection tracking is full", "as many connections are tracked as may be", func(c *rig.Case) func() error {
			try := far(c, "")
			nft(c, `table inet firewall {
				chain input { type filter hook input priority 0; ct state established accept; };
				chain come { type filter hook prerouting priority raw; iifname "lo" notrack; };
				chain leave { type filter hook output priority raw; oifname "lo" notrack; };
			}`)
			c.AtEnd(c.FlushConntrack)
			c.FillConntrack(0)
			return try
		}, []string{"connection tracking is full", "net.netfilter.nf_conntrack_max"}, []string{unknown, "could not insert"}),
		lost("an address translation that gives all clients one port", "nftables translates all clients to one address and port", func(c *rig.Case) func() error {
			try := far(c, "")
			nft(c, `table ip translation { chain input { type nat hook input priority 100; tcp dport 8080 snat to 10.77.0.9:5000; }; }`)
			return try
		}, []string{"could not insert their connections", "insert_failed"}, []string{unknown, "is full"}),
		lost("the reverse path filter drops the SYNs", "rp_filter is strict, and the clients' addresses are behind another interface", func(c *rig.Case) func() error {
			try := far(c, "10.88.0.2")
			c.Do("ip", "link", "add", "other", "type", "veth", "peer", "name", "another")
			c.Do("ip", "address", "add", "10.88.0.1/24", "dev", "other")
			c.Do("ip", "link", "set", "other", "up")
			c.Do("ip", "link", "set", "another", "up")
			near, err := net.InterfaceByName("near")
			c.Must(err)
			c.Do("ip", "-n", "far", "neighbour", "replace", "10.77.0.1", "lladdr", near.HardwareAddr.String(), "dev", "out") // or it is ARP that has no answer
			c.SetSysctl(map[string]string{"net/ipv4/conf/near/rp_filter": "1"})
			return try
		}, []string{"the reverse path filter"}, []string{unknown}),
		lost("clients that sign with TCP MD5", "the clients' kernel signs, the listener has no key", func(*rig.Case) func() error {
			return signed
		}, []string{"TCP MD5", "TCPMD5Unexpected"}, []string{unknown}),
		lost("the SYN-ACKs do not reach the clients", "the clients' host drops the SYN-ACKs", func(c *rig.Case) func() error {
			c.Needs("nft")
			try := far(c, "")
			c.Do("ip", "netns", "exec", "far", "nft", "add table inet deaf; add chain inet deaf input { type filter hook input priority 0; }; "+
				"add rule inet deaf input tcp sport 8080 tcp flags & (syn | ack) == (syn | ack) drop")
			return try
		}, []string{"SYN-ACKs do not reach them", "tcpdump", "gave_up"}, []string{unknown, "half_open\": 1"}),
		{"the listening socket is of one device (BindToDevice=), and clients come in by another", func(c *rig.Case) {
			try := far(c, "")
			c.ActivatedOn("near", `<Connector port="8080" useInheritedChannel="true"/>`, 50)
			c.Until("it answers", func() bool { return try() == nil })
			answered := keep(c, try)
			failed := keep(c, func() error { return once("127.0.0.1:8080") })
			c.Until("clients are refused", func() bool { return failed.Load() > 5 })
			c.Both(rig.Port, "losing listens_elsewhere").Names("it listens on device near alone").Silent("before_listener", "nft list ruleset")
			said := c.Row.Said
			c.Outside = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
			c.Ask(rig.Port).Verdict("losing listens_elsewhere").Names("local clients were refused")
			c.Row.Said = said + " Without rights: " + c.Row.Said
			c.Row.Truth = fmt.Sprintf("bound to device near: clients of 127.0.0.1 are refused (%d), of those that come in by near %d were not let in", failed.Load(), answered.Load())
		}},
		{"a netfilter rule with a counter rejects with a reset", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			nft(c, `table inet firewall { chain input { type filter hook input priority 0; tcp dport 8080 tcp flags syn counter reject with tcp reset; }; }`)
			failed := keep(c, func() error { return once("127.0.0.1:8080") })
			c.Until("clients are refused", func() bool { return failed.Load() > 3 })
			c.Row.Truth = "nftables rejects with a TCP reset"
			c.Both(rig.Port, "losing before_listener").Names("the netfilter rule inet firewall input handle", "rejects them")
			c.Outside = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
			c.Ask(rig.Port).Verdict("losing before_listener").Names("local clients were refused", "a firewall rule rejects them with a reset")
		}},
		{"bound to 127.0.0.1, asked at the interface's address", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "address=127.0.0.1")
			c.Answers("127.0.0.1:8080")
			c.Address(here)
			failed := keep(c, func() error { return once(here + ":8080") })
			c.Until("clients are refused", func() bool { return failed.Load() > 3 })
			c.Row.Truth = "listens on 127.0.0.1:8080, asked at " + here
			c.Both(rig.Port, "losing listens_elsewhere").Names("they asked "+here+":8080, and it listens on 127.0.0.1:8080 alone").Silent("threads.max", "maxThreads from")
		}},
		{"bound to 0.0.0.0 (IPv4 alone), asked at ::1", func(c *rig.Case) {
			c.Embedded(rig.JVM{VM: []string{"-Djava.net.preferIPv4Stack=true"}}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			failed := keep(c, func() error { return once("[::1]:8080") })
			c.Until("clients are refused", func() bool { return failed.Load() > 3 })
			c.Row.Truth = "listens on 0.0.0.0:8080, asked at ::1, as where localhost resolves to both"
			c.Both(rig.Port, "losing listens_elsewhere").Names("they asked [::1]:8080, and it listens on 0.0.0.0:8080 alone")
		}},
		{"asked in another network namespace than the server's", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			c.Outside = []string{"ip", "netns", "exec", "far"}
			c.Row.Truth = fmt.Sprintf("java %d listens on 8080 in another network namespace than the one that is asked", s.PID)
			who := fmt.Sprintf("java %d listens on 8080 in another network namespace", s.PID)
			command := fmt.Sprintf("sudo tcpdiag snapshot --pid %d", s.PID)
			// Where other servers of this machine listen on that port as well, none of them is named as the one.
			named := func(texts ...string) {
				said, all := c.Ask(rig.Port).Verdict("warning no_listener"), c.Ask(0)
				if strings.Contains(said.All, `"others"`) {
					said.Names("in another network namespace, and somebody in", "sudo tcpdiag snapshot --all-namespaces --port 8080")
					all.Names("in another network namespace: sudo tcpdiag snapshot --pid")
					return
				}
				said.Names(texts...)
				all.Names(texts...)
			}
			named(who, command)
			c.Outside = []string{"ip", "netns", "exec", "far", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
			named(who)
			c.Outside = nil
			c.Ask(rig.Port).Verdict("ok").Silent("another network namespace")
		}},
		{"nobody has tried", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			c.Wait(2 * time.Second)
			c.Row.Truth = "no client connects"
			c.Both(rig.Port, "ok").Names("no client has tried to connect in the last", "nobody_tried")
		}},
	}
}

// nft loads rules until the case ends.
func nft(c *rig.Case, rules string) {
	c.Helper()
	c.Needs("nft")
	file := c.Write("rules", strings.ReplaceAll(rules, ";", ";\n"))
	c.Do("nft", "-f", file)
	c.AtEnd(func() { c.Do("nft", "flush", "ruleset") })
}

// far is a client in a network namespace of its own, beyond a pair of devices, that asks from
// an address ("" is the device's).
func far(c *rig.Case, from string) func() error {
	c.Helper()
	c.Do("ip", "netns", "add", "far")
	c.AtEnd(func() {
		_ = exec.Command("ip", "netns", "delete", "far").Run()
		_ = exec.Command("ip", "link", "delete", "near").Run()
		_ = exec.Command("ip", "link", "delete", "other").Run()
	})
	c.Do("ip", "link", "add", "near", "type", "veth", "peer", "name", "out", "netns", "far")
	c.Do("ip", "address", "add", "10.77.0.1/24", "dev", "near")
	c.Do("ip", "link", "set", "near", "up")
	c.Do("ip", "-n", "far", "address", "add", "10.77.0.2/24", "dev", "out")
	c.Do("ip", "-n", "far", "link", "set", "out", "up")
	if from != "" {
		c.Do("ip", "-n", "far", "address", "add", from+"/32", "dev", "out")
		c.Do("ip", "-n", "far", "route", "replace", "10.77.0.1/32", "dev", "out", "src", from)
	}
	return func() error {
		return exec.CommandContext(c.Ctx, "ip", "netns", "exec", "far", "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/10.77.0.1/8080").Run()
	}
}

// signed connects with a TCP MD5 key.
func signed() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// struct tcp_md5sig of the address 127.0.0.1 (include/uapi/linux/tcp.h).
	key := make([]byte, 128+2+2+4+80)
	binary.NativeEndian.PutUint16(key, unix.AF_INET)
	copy(key[4:], net.IPv4(127, 0, 0, 1).To4())
	binary.NativeEndian.PutUint16(key[130:], 6)
	copy(key[136:], "secret")
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, string(key)); err != nil {
		return err
	}
	patience := unix.NsecToTimeval((2 * time.Second).Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience); err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: rig.Port, Addr: [4]byte{127, 0, 0, 1}})
}
