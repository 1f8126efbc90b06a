package match

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// live is the connector on a port with what the kernel and the threads say now.
func (m *matching) live(c *catalina.Connector, l Listening) *model.Connector {
	out := c.Connector
	out.AcceptCount = Effective(out.AcceptCount, l.SendQ)
	pool, ok := m.pool(c, l)
	if ok && strings.Contains(pool.Protocol, "-") {
		out.Protocol = pool.Protocol
		// AbstractHttp11Protocol.getNamePrefix: the threads say what is in force.
		out.TLS = strings.HasPrefix(pool.Protocol, "https")
	}
	out.WorkerNames = c.NamePrefix
	if c.NamePrefix == "" && ok && pool.Port == 0 {
		out.WorkerNames = pool.Protocol + "-" + pool.Address
	}
	out.WithoutPoller = ok && pool.WithoutPoller()
	out.Debugger = m.pools.Named(debuggerReads) > 0
	virtual := out.VirtualThreads != nil && out.VirtualThreads.Value
	switch {
	case virtual:
	case c.NamePrefix != "":
		if n := m.pools.Named(c.NamePrefix); n > 0 {
			out.PoolThreads = &n
		}
	case ok:
		out.PoolThreads = poolThreads(pool, catalina.Housekeeping(m.found.Version, c.Endpoint, m.cpus))
	}
	doubtThreads(&out)
	return &out
}

// debuggerReads is the thread that takes a debugger's commands, while one is connected (reader of the JDK's debugLoop.c).
const debuggerReads = "JDWP Command Reader"

// doubtThreads notes that maxThreads means nothing with virtual threads, where
// it is not known whether there are any and no worker thread is seen.
func doubtThreads(c *model.Connector) {
	known := c.VirtualThreads != nil && !c.VirtualThreads.Uncertain
	if known || c.PoolThreads != nil || c.MaxThreads == nil || c.MaxThreads.Uncertain {
		return
	}
	c.MaxThreads = c.MaxThreads.Noted("uncertain: it has no effect if requests run on virtual threads, which is not known")
	c.MaxThreads.Uncertain = true
}

// poolThreads is nil where no worker is to be seen: the connector's requests
// run elsewhere.
func poolThreads(pool Pool, others int) *int {
	n := pool.Count(others)
	if n == 0 {
		return nil
	}
	return &n
}

// pool finds the threads of a connector: by their port, else, where an address
// or the cut took its place, by being the only ones that can be meant.
func (m *matching) pool(c *catalina.Connector, l Listening) (Pool, bool) {
	if pool, ok := m.pools.find(l.Port); ok {
		return pool, true
	}
	likely, known := m.ofConnector[c]
	if !known {
		likely.pool, likely.ok = m.onlyPool(c)
		m.ofConnector[c] = likely
	}
	return likely.pool, likely.ok
}

// likelyPool is what onlyPool found.
type likelyPool struct {
	pool Pool
	ok   bool
}

// onlyPool is the one of the pools without a port that can be a connector's and
// no other connector's.
func (m *matching) onlyPool(c *catalina.Connector) (Pool, bool) {
	var found []Pool
	for _, pool := range m.pools.all {
		if pool.Port == 0 && pool.couldBe(c) {
			found = append(found, pool)
		}
	}
	if len(found) == 0 {
		return m.encrypted(c)
	}
	if len(found) != 1 {
		return Pool{}, false
	}
	sharers := 0
	for i := range m.found.Connectors {
		if found[0].couldBe(&m.found.Connectors[i]) {
			sharers++
		}
	}
	return found[0], sharers <= 1
}

// encrypted are the only threads without a port where those of the only connector have none with it: they speak TLS,
// which what could be read of the configuration does not say.
func (m *matching) encrypted(c *catalina.Connector) (Pool, bool) {
	if len(m.pools.all) != 1 || len(m.found.Connectors) != 1 || c.Scheme != "http" {
		return Pool{}, false
	}
	only := m.pools.all[0]
	return only, only.Port == 0 && only.Address == "" && strings.HasPrefix(only.Protocol, "https-")
}

// couldBe says whether threads without a port may be those of a connector.
func (p Pool) couldBe(c *catalina.Connector) bool {
	scheme := c.Scheme
	if c.TLS {
		scheme = "https"
	}
	switch {
	case scheme != "" && !strings.HasPrefix(p.Protocol, scheme+"-") && p.Protocol != scheme:
		return false
	case p.Address != "":
		return c.Address.IsValid() && p.mayListen(c.Address)
	}
	return c.TLS || c.Port == 0 || scheme == ""
}

// Effective says where the kernel's backlog differs from acceptCount. It was
// fixed at listen(): the smaller of acceptCount and net.core.somaxconn then.
func Effective(configured *model.Setting[int], sendQ int) *model.Setting[int] {
	switch {
	case sendQ <= 0:
		return configured
	case configured == nil:
		return &model.Setting[int]{
			Value: sendQ, Kind: model.SourceKernel, Source: "the listener's backlog (Send-Q)",
			Note: "in force; what is configured is not known",
		}
	case configured.Value > sendQ:
		return configured.Noted(fmt.Sprintf(
			"in force is %d: held down by net.core.somaxconn when the server began to listen, or changed since", sendQ))
	case configured.Value < sendQ:
		return configured.Noted(fmt.Sprintf("in force is %d: set by code, or changed since the server began to listen", sendQ))
	}
	return configured
}

// mayListen says whether the address in the threads' names, where they have one,
// can be this one.
func (p Pool) mayListen(address netip.Addr) bool {
	if p.Address == "" {
		return true
	}
	return strings.HasPrefix(javaAddress(address.Unmap())+"-", p.Address)
}
