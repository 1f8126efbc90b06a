package draws

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ending is how an attempt ended, as its client saw it.
type ending int

const (
	answered   ending = iota
	gaveUp            // no handshake in time
	refused           // RST to the SYN
	reset             // RST, or the end, before a byte of the answer
	unanswered        // let in, and no byte came in time
	broken            // an answer that is none: a part of one, or an error
	checked           // connected, and sent nothing
	local             // this machine's own limits
	hasty             // left at the moment when it was connected
	tooLate           // left when its answer had come, which it had not read yet
	endings
)

func (e ending) String() string {
	return [endings]string{"answered", "gave up", "refused", "reset", "unanswered", "broken", "checked", "local", "connected too late", "answered too late"}[e]
}

// failed reports whether its client did not get what it came for.
func (e ending) failed() bool { return e != answered && e != checked && e != local }

// account is what clients write down.
type account struct {
	mu    sync.Mutex
	ended []end
}

type end struct {
	at    time.Time
	how   ending
	later bool // a request after the first of its connection: no client of its own
}

func (a *account) add(how ending, later bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, end{time.Now(), how, later})
}

// failures are those between two moments.
func (a *account) failures(from, to time.Time) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.ended {
		if e.how.failed() && e.at.After(from) && e.at.Before(to) {
			n++
		}
	}
	return n
}

// lately are the failures of which an agent has to speak: whoever has failed in this very second it may
// not know yet, so those are one at most.
func (a *account) lately(now time.Time) int {
	known := now.Add(-time.Second)
	if n := a.failures(now.Add(-forgotten), known); n > 0 {
		return n
	}
	return min(1, a.failures(known, now))
}

// last is when the last client failed.
func (a *account) last() (at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.ended {
		if e.how.failed() && e.at.After(at) {
			at = e.at
		}
	}
	return at
}

// clients are the attempts by how they ended.
func (a *account) clients() (n [endings]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.ended {
		if !e.later {
			n[e.how]++
		}
	}
	return n
}

func (a *account) String() string {
	var parts []string
	for how, n := range a.clients() {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, ending(how)))
		}
	}
	return strings.Join(parts, ", ")
}

// visitor is one user.
type visitor struct {
	d       draw
	address string
	path    string
	text    []byte
	config  *tls.Config
	h2      bool
	far     *far // where it is, nil for here
	account *account
}

// ask has it do one thing, as no client of the draw.
func (v *visitor) ask(op string) {
	v.d.requests, v.d.handler, v.d.halfClose, v.account = 1, "sleep", false, new(account)
	v.d.ms, v.d.connect, v.d.reply = 0, time.Second, 2*time.Second
	v.path = "/work.jsp?op=" + op
	v.text = v.d.text(v.path)
}

// visit asks again and again until the context ends; what was begun is ended.
func (v *visitor) visit(ctx context.Context) {
	for ctx.Err() == nil {
		how := v.connection(ctx)
		if how.failed() {
			rig.Wait(ctx, 100*time.Millisecond)
		}
	}
}

// check is a balancer's: it connects and closes.
func (v *visitor) check(ctx context.Context) {
	for ctx.Err() == nil {
		conn, how := v.dial()
		if conn != nil {
			_ = conn.Close()
			how = checked
		}
		v.account.add(how, false)
		rig.Wait(ctx, 200*time.Millisecond)
	}
}

func endingOf(err error, timeout ending) ending {
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		return timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return reset
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EMFILE):
		return local
	}
	return broken
}

// connection is one, with as many requests as the draw has.
func (v *visitor) connection(ctx context.Context) (how ending) {
	conn, how := v.dial()
	if conn == nil {
		v.account.add(how, false)
		return how
	}
	defer conn.Close()
	if v.h2 {
		how = v.stream(conn)
		v.account.add(how, false)
		return how
	}
	if v.config != nil {
		conn = tls.Client(conn, v.config)
	}
	reader := bufio.NewReader(conn)
	for i := range v.d.requests {
		how = v.request(conn, reader)
		v.account.add(how, i > 0)
		if how != answered || ctx.Err() != nil {
			return how
		}
	}
	if v.d.handler == "idle" { // it keeps the connection
		rig.Wait(ctx, time.Hour)
	}
	return how
}

func (v *visitor) request(conn net.Conn, reader *bufio.Reader) ending {
	_ = conn.SetDeadline(time.Now().Add(v.d.reply))
	if _, err := conn.Write(v.text); err != nil {
		return endingOf(err, unanswered)
	}
	if v.d.handler == "upload" {
		go v.rest(conn)
	} else {
		v.rest(conn)
	}
	if _, err := reader.Peek(1); err != nil {
		return late(conn, endingOf(err, unanswered))
	}
	if v.d.server.protocol == "ajp" {
		return ajpAnswer(reader)
	}
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return broken
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return broken
	}
	return answered
}

// late is unanswered, or tooLate where the kernel has the answer: a timer that comes late on a busy
// machine makes no client that got none.
func late(conn net.Conn, how ending) ending {
	tcp, ok := conn.(*net.TCPConn)
	if !ok || how != unanswered {
		return how
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return how
	}
	_ = raw.Control(func(fd uintptr) {
		if n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT); err == nil && n > 0 {
			how = tooLate
		}
	})
	return how
}

// bodySize is an upload's.
const bodySize = 400_000

// rest sends the body of an upload, in ten parts; who half-closes does so after the last byte.
func (v *visitor) rest(conn net.Conn) {
	if v.d.handler == "upload" {
		for range 10 {
			if _, err := conn.Write(make([]byte, bodySize/10)); err != nil {
				return
			}
			time.Sleep(time.Duration(v.d.ms/10) * time.Millisecond)
		}
	}
	if tcp, ok := conn.(*net.TCPConn); ok && v.d.halfClose {
		_ = tcp.CloseWrite()
	}
}

// stream is a request over HTTP/2 on a connection of its own.
func (v *visitor) stream(conn net.Conn) ending {
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport, Timeout: v.d.reply}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + v.address + v.path)
	if err != nil {
		return endingOf(err, unanswered)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return broken
	}
	return answered
}

// path is what is asked for.
func (d draw) path() string {
	path := fmt.Sprintf("/work.jsp?op=%s&ms=%d&size=%d&to=%d", d.handler, d.ms, d.server.pool, rig.BackendPort)
	switch d.handler {
	case "async":
		return fmt.Sprintf("/later.jsp?ms=%d", d.ms)
	case "idle", "half":
		return "/work.jsp?op=hello"
	case "gc":
		return path + "&log2=21"
	case "file":
		return path + "&file=" + fifo
	}
	return path
}

// text is a request of the draw's protocol.
func (d draw) text(path string) []byte {
	switch {
	case d.server.protocol == "ajp":
		return ajpRequest(path)
	case d.handler == "half" && path == d.path():
		return []byte("GET " + path + " HTTP/1.1\r\nHost: loc")
	case d.handler == "upload" && path == d.path():
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", path, bodySize)
	}
	return []byte(rig.Get(path))
}

// ajpRequest is AJP13's forward request.
func ajpRequest(path string) []byte {
	uri, query, _ := strings.Cut(path, "?")
	text := func(b []byte, s string) []byte {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s))) //nolint:gosec // a short path
		return append(append(b, s...), 0)
	}
	b := []byte{2, 2} // JK_AJP13_FORWARD_REQUEST, GET
	b = text(text(text(b, "HTTP/1.1"), uri), "127.0.0.1")
	b = text(text(b, "localhost"), "localhost")
	b = append(b, 0, 80, 0, 0, 0) // port, not TLS, no headers
	b = append(text(append(b, 5), query), 0xff)
	return slices.Concat([]byte{0x12, 0x34}, binary.BigEndian.AppendUint16(nil, uint16(len(b))), b) //nolint:gosec // the same
}

// ajpAnswer reads packets up to the end of the response.
func ajpAnswer(r io.Reader) ending {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(r, head); err != nil || head[0] != 'A' || head[1] != 'B' {
			return broken
		}
		body := make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(r, body); err != nil || len(body) < 2 {
			return broken
		}
		if body[0] == 4 && len(body) > 2 && binary.BigEndian.Uint16(body[1:]) != http.StatusOK {
			return broken
		}
		if body[0] == 5 { // JK_AJP13_END_RESPONSE is two bytes
			return answered
		}
	}
}
