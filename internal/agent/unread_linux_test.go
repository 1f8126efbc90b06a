package agent

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// dialDeaf is a client with room for little, so that what it does not read stays with the server.
func dialDeaf(t *testing.T, address string) net.Conn {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<10)
		})
	}}
	c, err := d.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// heldFor are the bytes that the kernel holds of each connection of a server, whoever has it.
func heldFor(t *testing.T, address string) (held []int64) {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", address)
	require.NoError(t, err)
	text, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[3] == "0A" || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", at.Port)) {
			continue
		}
		n, err := strconv.ParseInt(strings.Split(f[4], ":")[0], 16, 64)
		require.NoError(t, err)
		if n > 0 {
			held = append(held, n)
		}
	}
	return held
}

// What the kernel holds of answers that nobody reads is little for each connection.
func TestUnreadAnswersAreSmall(t *testing.T) {
	made := newMakers(testLedger())
	body := strings.Repeat("x", 2<<20)
	_, address := boundedServer(t, made.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })))
	for range 6 {
		_, err := io.WriteString(dialDeaf(t, address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return len(heldFor(t, address)) == 6 }, time.Minute, time.Millisecond)
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		for _, n := range heldFor(t, address) {
			require.LessOrEqual(t, n, int64(2*sendBuffer))
		}
	}
}

// A connection that is closed, and whose answer was not read, still counts: however many ask, and leave what
// they are sent, the kernel holds no more of them than there may be connections.
func TestUnreadAnswersOfClosedConnections(t *testing.T) {
	made := newMakers(testLedger())
	body := strings.Repeat("x", 60<<10)
	l, address := boundedServer(t, made.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })))
	for i := range 4 * maxConnections {
		_, _ = io.WriteString(dialDeaf(t, address), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if i%16 == 15 { // one that is being closed may be there for a moment
			require.Eventually(t, func() bool { return len(heldFor(t, address)) <= maxConnections }, time.Minute, time.Millisecond)
		}
	}
	require.LessOrEqual(t, l.held(), maxConnections)
	response, err := http.Get("http://" + address)
	require.NoError(t, err)
	got, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Len(t, got, len(body), "who reads has all of it")
}

// A client that resets its connection without having read the answer takes up no place any more.
func TestUnreadAnswersOfResetConnections(t *testing.T) {
	made := newMakers(testLedger())
	body := strings.Repeat("x", 60<<10)
	l, address := boundedServer(t, made.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })))
	var clients []net.Conn
	for range 20 {
		c := dialDeaf(t, address)
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		clients = append(clients, c)
	}
	require.Eventually(t, func() bool { return len(heldFor(t, address)) == len(clients) }, time.Minute, time.Millisecond)
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range clients {
		require.NoError(t, c.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return len(heldFor(t, address)) == 0 }, time.Minute, time.Millisecond)
	for _, c := range conns {
		require.Zero(t, unread(c.Conn), "the kernel holds nothing of it")
	}
	require.Eventually(t, func() bool { return l.held() == 0 }, time.Minute, time.Millisecond)
}

// Who reads slowly has all of the end of an answer; who stops has ten seconds.
func TestTheEndOfAnAnswerMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		untilRead(func() int { return 5 - int(time.Since(begin)/(9*time.Second)) })
		require.Equal(t, 45*time.Second, time.Since(begin))
		begin = time.Now()
		untilRead(func() int { return 5 })
		require.Equal(t, maxReading, time.Since(begin))
	})
}

// frame is one of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	head = append(head, kind, flags)
	return string(binary.BigEndian.AppendUint32(head, stream)[1:]) + payload
}

// speaksHTTP2 is a client that reads nothing.
func speaksHTTP2(t *testing.T, address string) *tls.Conn {
	t.Helper()
	c := tls.Client(dialDeaf(t, address), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, c.HandshakeContext(t.Context()))
	require.Equal(t, "h2", c.ConnectionState().NegotiatedProtocol)
	_, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(4, 0, 0, ""))
	require.NoError(t, err)
	return c
}

// Of a client that asks, and reads nothing of what is answered, no more is read: over HTTP/2 it could
// have answers to its pings, and refusals of its requests, pile up.
func TestAnswersToPingsDoNotPileUp(t *testing.T) {
	for name, one := range map[string]func(n uint32) string{
		"pings":    func(uint32) string { return frame(6, 0, 0, "12345678") },
		"requests": func(n uint32) string { return frame(1, 5, 2*n+1, "\x82\x84\x87\x41\x01a") },
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := serverOfTLS(t)
			c := speaksHTTP2(t, address)
			var frames uint32
			sent := 0
			for err := error(nil); err == nil && sent < 1<<20; {
				var many strings.Builder
				for range 50 {
					many.WriteString(one(frames))
					frames++
				}
				_ = c.SetWriteDeadline(time.Now().Add(3 * time.Second)) // more than it is kept waiting for its rate
				var n int
				n, err = io.WriteString(c, many.String())
				sent += n
			}
			require.Less(t, sent, 256<<10)
		})
	}
}

// Who reads nothing is closed.
func TestLongUnreadIsGivenUp(t *testing.T) {
	address, l := serverOfTLS(t)
	c := speaksHTTP2(t, address)
	for err := error(nil); err == nil; {
		_ = c.SetWriteDeadline(time.Now().Add(3 * time.Second))
		_, err = io.WriteString(c, strings.Repeat(frame(6, 0, 0, "12345678"), 50))
	}
	require.Eventually(t, func() bool { return l.held() == 0 && len(heldFor(t, address)) == 0 }, time.Minute, 10*time.Millisecond)
}

// serverOfTLS serves HTTP/2 as the agent does.
func serverOfTLS(t *testing.T) (address string, l *boundedListener) {
	t.Helper()
	own := httptest.NewTLSServer(nil) // for its certificate
	own.Close()
	l = newBoundedListener(listenLocal(t), testLedger())
	l.tls = true
	server := newServer(t.Context(), http.NotFoundHandler())
	server.TLSConfig = &tls.Config{Certificates: own.TLS.Certificates, MinVersion: tls.VersionTLS12}
	done := make(chan error, 1)
	go func() { done <- serveOn(l, server) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-done)
	})
	return l.Addr().String(), l
}

// slowly takes nine seconds for each piece, if it may.
type slowly struct {
	http.ResponseWriter
	until atomic.Pointer[time.Time]
	all   int
}

func (s *slowly) SetWriteDeadline(t time.Time) error { s.until.Store(&t); return nil }
func (s *slowly) FlushError() error                  { return nil }

func (s *slowly) Write(p []byte) (int, error) {
	time.Sleep(9 * time.Second)
	if time.Now().After(*s.until.Load()) {
		return 0, os.ErrDeadlineExceeded
	}
	s.all += len(p)
	return len(p), nil
}

// A large answer may take long, as long as each piece of it arrives; it ends at once when it is given up.
func TestAnswersArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowly{}
		n, err := newPaced(w).Write(make([]byte, 10*piece+1))
		require.NoError(t, err)
		require.Equal(t, 10*piece+1, n)
		require.Equal(t, n, w.all)
		p := newPaced(w)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		context.AfterFunc(ctx, p.giveUp)
		n, err = p.Write(make([]byte, 100*piece))
		require.True(t, errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errGivenUp), err)
		require.Equal(t, 3*piece, n)
	})
}
