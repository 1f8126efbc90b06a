package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// The server that the WebSockets fill.
const (
	slots     = 20
	keepAlive = 3 * time.Second
)

// webSockets are rows in which they hold all of a server's slots, and somebody else comes.
func webSockets() []deployment {
	inCode := func(b *bench) *server {
		return b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", fmt.Sprint("maxConnections=", slots), "acceptCount=10",
			fmt.Sprint("keepAliveTimeout=", keepAlive.Milliseconds()), "maxThreads=50")
	}
	given := []string{"--max-connections", fmt.Sprint(slots), "--max-threads", "50"}
	return []deployment{
		{"WebSockets that say nothing fill max-connections", func(b *bench) {
			s := inCode(b)
			b.sockets(s, false)
			b.upgraded(b.ask(port, given...), "saturated max_connections", "saturated keep_alive_idle")
		}},
		{"WebSockets that say nothing, keepAliveTimeout of 3 s in server.xml", func(b *bench) {
			home := b.distribution(tomcat10)
			base := b.base(home, fmt.Sprintf(`<Connector port="8080" maxThreads="50" maxConnections="%d" acceptCount="10" keepAliveTimeout="%d"/>`, slots, keepAlive.Milliseconds()))
			b.echoes(base)
			s := b.catalina(home, base, options{})
			b.sockets(s, false)
			said := b.ask(port)
			b.upgraded(said, "saturated max_connections")
			b.sentence(said, "idle")
		}},
		{"WebSockets that talk fill max-connections", func(b *bench) {
			s := inCode(b)
			talks := b.sockets(s, true)
			said := b.ask(port, given...)
			talks.each(b)
			b.upgraded(said, "saturated max_connections", "saturated keep_alive_idle")
			b.silent(said, "eep-alive-timeout to", "eepAliveTimeout to")
		}},
	}
}

// upgraded expects what is right to say of WebSockets that fill a server: the first
// advice is the limit, as no timeout of the connector ends them.
func (b *bench) upgraded(s said, want ...string) {
	b.verdict(s, want...)
	b.silent(s, "idle keep-alive", "frees idle")
	if s.listener == nil {
		return
	}
	for _, f := range s.listener.Verdict.Findings {
		if f.Code == s.listener.Verdict.Cause {
			limit, timeout := strings.Index(f.Advice, "aise maxConnections from"), strings.Index(f.Advice, "eepAliveTimeout to")
			b.holds(limit >= 0 && (timeout < 0 || limit < timeout) && strings.Contains(f.Advice, "WebSockets"), "advises %q", f.Advice)
			return
		}
	}
	b.holds(false, "%q advises nothing", s.listener.Verdict.Cause)
}

// sentence expects that the summary does not have a word.
func (b *bench) sentence(s said, word string) {
	if s.listener != nil {
		b.holds(!strings.Contains(s.listener.Verdict.Summary, word), "says %q", word)
	}
}

// sockets opens them, until all slots are taken, has five others come, and waits for
// longer than keepAliveTimeout and what tcpdiag grants Tomcat to act on it.
func (b *bench) sockets(s *server, talk bool) *talkers {
	b.answers("127.0.0.1:8080")
	t := &talkers{ended: make(chan error, slots)}
	for i := range t.said {
		conn, r, err := webSocket(b.ctx, "127.0.0.1:8080")
		b.must(err)
		b.cleanup = append(b.cleanup, func() { _ = conn.Close() })
		if talk {
			go t.talk(b, i, conn, r)
		}
	}
	b.hold("tcp", "127.0.0.1:8080", 5, get("/?ms=0"), nil)
	wait(b.ctx, keepAlive+3*settle)
	if talk {
		t.each(b)
	}
	b.until("nobody is served", func() bool { return s.says(port).Busy == 0 && s.says(port).Connections == slots })
	b.row.Truth = s.says(port).String() + ", all of them WebSockets, keepAliveTimeout 3 s"
	return t
}

// talkers are WebSockets that send a text five times a second.
type talkers struct {
	said  [slots]atomic.Int64
	ended chan error
}

func (t *talkers) talk(b *bench, i int, conn net.Conn, r *bufio.Reader) {
	for b.ctx.Err() == nil {
		if err := echo(conn, r, "hello"); err != nil {
			t.ended <- err
			return
		}
		t.said[i].Add(1)
		wait(b.ctx, settle/10)
	}
}

// each waits until every one has had an answer from now on: none has ended.
func (t *talkers) each(b *bench) {
	for i := range t.said {
		before := t.said[i].Load()
		b.until("a WebSocket talks", func() bool {
			select {
			case err := <-t.ended:
				b.must(fmt.Errorf("a WebSocket has ended: %w", err))
			default:
			}
			return t.said[i].Load() > before
		})
	}
}

// echoes gives the ROOT application of a standalone server the WebSocket.
func (b *bench) echoes(base string) {
	inf := filepath.Join(base, "webapps/ROOT/WEB-INF")
	b.must(os.MkdirAll(filepath.Join(inf, "classes"), 0o755))
	classes, err := filepath.Glob(filepath.Join(b.Embedded, "Echo*.class"))
	b.must(err)
	for _, c := range classes {
		b.must(output(b.ctx, "", "cp", c, filepath.Join(inf, "classes")))
	}
	b.must(os.WriteFile(filepath.Join(inf, "web.xml"), []byte("<web-app><listener><listener-class>Echo$Start</listener-class></listener></web-app>\n"), 0o600))
}
