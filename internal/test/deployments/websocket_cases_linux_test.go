package deployments

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The server that the WebSockets fill.
const (
	slots     = 20
	keepAlive = 3 * time.Second
)

// webSockets are rows in which they hold all of a server's slots, and somebody else comes.
func webSockets() []deployment {
	inCode := func(c *rig.Case) *rig.Server {
		return c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", fmt.Sprint("maxConnections=", slots), "acceptCount=10",
			fmt.Sprint("keepAliveTimeout=", keepAlive.Milliseconds()), "maxThreads=50")
	}
	given := []string{"--max-connections", fmt.Sprint(slots), "--max-threads", "50"}
	return []deployment{
		{"WebSockets that say nothing fill max-connections", func(c *rig.Case) {
			s := inCode(c)
			sockets(c, s, false)
			upgraded(c, c.Ask(rig.Port, given...), "saturated max_connections", "saturated keep_alive_idle")
		}},
		{"WebSockets that say nothing, keepAliveTimeout of 3 s in server.xml", func(c *rig.Case) {
			home := c.Distribution(rig.Tomcat10)
			base := c.Base(home, fmt.Sprintf(`<Connector port="8080" maxThreads="50" maxConnections="%d" acceptCount="10" keepAliveTimeout="%d"/>`, slots, keepAlive.Milliseconds()))
			echoes(c, base)
			s := c.Catalina(home, base, rig.JVM{})
			sockets(c, s, false)
			said := c.Ask(rig.Port)
			upgraded(c, said, "saturated max_connections")
			sentence(c, said, "idle")
		}},
		{"WebSockets that talk fill max-connections", func(c *rig.Case) {
			s := inCode(c)
			talks := sockets(c, s, true)
			said := c.Ask(rig.Port, given...)
			talks.each(c)
			upgraded(c, said, "saturated max_connections", "saturated keep_alive_idle")
			said.Silent("eep-alive-timeout to", "eepAliveTimeout to")
		}},
	}
}

// upgraded expects what is right to say of WebSockets that fill a server: the first
// advice is the limit, as no timeout of the connector ends them.
func upgraded(c *rig.Case, s *rig.Said, want ...string) {
	s.Verdict(want...)
	s.Silent("idle keep-alive", "frees idle")
	if s.Listener == nil {
		return
	}
	for _, f := range s.Listener.Verdict.Findings {
		if f.Code == s.Listener.Verdict.Cause {
			limit, timeout := strings.Index(f.Advice, "aise maxConnections from"), strings.Index(f.Advice, "eepAliveTimeout to")
			c.Holds(limit >= 0 && (timeout < 0 || limit < timeout) && strings.Contains(f.Advice, "WebSockets"), "advises %q", f.Advice)
			return
		}
	}
	c.Holds(false, "%q advises nothing", s.Listener.Verdict.Cause)
}

// sentence expects that the summary does not have a word.
func sentence(c *rig.Case, s *rig.Said, word string) {
	if s.Listener != nil {
		c.Holds(!strings.Contains(s.Listener.Verdict.Summary, word), "says %q", word)
	}
}

// sockets opens them, until all slots are taken, has five others come, and waits for
// longer than keepAliveTimeout and what tcpdiag grants Tomcat to act on it.
func sockets(c *rig.Case, s *rig.Server, talk bool) *talkers {
	c.Answers("127.0.0.1:8080")
	t := &talkers{ended: make(chan error, slots)}
	for i := range t.said {
		conn, r, err := rig.WebSocket(c.Ctx, "127.0.0.1:8080")
		c.Must(err)
		c.AtEnd(func() { _ = conn.Close() })
		if talk {
			go t.talk(c, i, conn, r)
		}
	}
	c.Hold(rig.Clients{N: 5, Text: rig.Get("/?ms=0")})
	c.Wait(keepAlive + 3*2*time.Second)
	if talk {
		t.each(c)
	}
	c.Until("nobody is served", func() bool { return s.Says(rig.Port).Busy == 0 && s.Says(rig.Port).Connections == slots })
	c.Row.Truth = s.Says(rig.Port).String() + ", all of them WebSockets, keepAliveTimeout 3 s"
	return t
}

// talkers are WebSockets that send a text five times a second.
type talkers struct {
	said  [slots]atomic.Int64
	ended chan error
}

func (t *talkers) talk(c *rig.Case, i int, conn net.Conn, r *bufio.Reader) {
	for c.Ctx.Err() == nil {
		if err := rig.Echo(conn, r, "hello"); err != nil {
			t.ended <- err
			return
		}
		t.said[i].Add(1)
		c.Wait(2 * time.Second / 10)
	}
}

// each waits until every one has had an answer from now on: none has ended.
func (t *talkers) each(c *rig.Case) {
	for i := range t.said {
		before := t.said[i].Load()
		c.Until("a WebSocket talks", func() bool {
			select {
			case err := <-t.ended:
				c.Must(fmt.Errorf("a WebSocket has ended: %w", err))
			default:
			}
			return t.said[i].Load() > before
		})
	}
}

// echoes gives the ROOT application of a standalone server the WebSocket.
func echoes(c *rig.Case, base string) {
	inf := filepath.Join(base, "webapps/ROOT/WEB-INF")
	c.Must(os.MkdirAll(filepath.Join(inf, "classes"), 0o755))
	classes, err := filepath.Glob(filepath.Join(strings.SplitN(c.EmbeddedPath(), ":", 2)[0], "Echo*.class"))
	c.Must(err)
	for _, class := range classes {
		c.Do("cp", class, filepath.Join(inf, "classes"))
	}
	c.Must(os.WriteFile(filepath.Join(inf, "web.xml"), []byte("<web-app><listener><listener-class>Echo$Start</listener-class></listener></web-app>\n"), 0o600))
}
