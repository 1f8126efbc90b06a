package deployments

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// here is an address of the interface.
const here = "10.77.0.1"

// beforeRemedies are about clients that do not reach the server, or that it resets.
func beforeRemedies() []remedy {
	plain := []string{"port=8080"}
	return []remedy{{
		finding: "listens_elsewhere", load: "address=127.0.0.1, 10 clients/s ask the interface's address",
		world: world{embedded: true, settings: append(plain, "address=127.0.0.1"), flags: []string{"--interval", "4s"}, started: func(c *rig.Case, _ *rig.Server) {
			c.Address(here)
		}},
		press: rig.Arrivals(10, "/", func(o *demo.BurstOptions) { o.Address = here + ":8080" }),
		tries: []try{
			{says: `Have it listen on all addresses \(server\.address or the Connector's address: unset, or (0\.0\.0\.0)`, did: "address=%s", apply: set("address")},
			{says: `No limit of Tomcat's refuses a connection`, did: "acceptCount=1000", apply: setting("acceptCount=1000"), vain: true},
		},
	}, {
		finding: "before_listener", load: "a netfilter rule with a counter drops each second SYN, 10 clients/s",
		world: world{embedded: true, settings: plain, flags: []string{"--interval", "6s"}, started: func(c *rig.Case, _ *rig.Server) {
			nft(c, `table inet firewall { chain input { type filter hook input priority 0; tcp dport 8080 tcp flags syn numgen inc mod 2 == 0 counter drop; }; }`)
		}},
		press: rig.Arrivals(10, "/", rig.Longer(8*time.Second)),
		tries: []try{
			{says: `the netfilter rule inet firewall input handle (\d+)`, did: "nft delete rule inet firewall input handle %s", act: func(c *rig.Case, _ *rig.Server, groups []string) {
				c.Do("nft", "delete", "rule", "inet", "firewall", "input", "handle", groups[1])
			}},
			{says: `None of Tomcat's limits has a part in it`, did: "acceptCount=1000", apply: setting("acceptCount=1000"), vain: true},
		},
	}, {
		finding: "server_resets", load: "5 uploads/s of 30 MiB, of which maxSwallowSize lets 2 MiB be swallowed",
		world: world{embedded: true, settings: plain, flags: []string{"--interval", "4s"}},
		press: rig.Arrivals(5, "/", func(o *demo.BurstOptions) { o.Body = 30 << 20 }),
		tries: []try{
			{says: `uploads beyond what is swallowed \(server\.tomcat\.max-swallow-size, maxSwallowSize\)`, did: "maxSwallowSize=-1", apply: setting("maxSwallowSize=-1"), after: "no cause"}, // they have their answer, which is that there is too much
			{says: `No limit of connections or threads has a part in it`, did: "maxThreads=400", apply: setting("maxThreads=400"), vain: true},
		},
	}}
}
