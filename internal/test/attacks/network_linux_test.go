package attacks

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// neighbours are what may come to the port, each again and again.
func neighbours() map[string]string {
	request := "GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Basic %s\r\n\r\n"
	return map[string]string{
		"a megabyte of headers": "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", mb),
		"many headers":          "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a: b\r\n", 100_000) + "\r\n",
		"scrapes not read":      fmt.Sprintf(request, "dTpyaWdodA=="), // u:right
		"wrong passwords":       fmt.Sprintf(request, "dTp3cm9uZw=="), // u:wrong
		"silence":               "",
		"half a request":        "GET / HTTP/1.1\r\n",
		"reloads":               "POST /-/reload HTTP/1.1\r\nHost: a\r\nAuthorization: Basic dTpyaWdodA==\r\nContent-Length: 0\r\n\r\n",
	}
}

// TestLongNetwork: 1,500 connections of each kind at once, and the agent answers
// any client that knows the password.
func TestLongNetwork(t *testing.T) {
	nettest.Root(t)
	program, times := build(t), 200
	if everything() {
		times = 1500
	}
	header(t)
	for name, request := range neighbours() {
		attempt(t, "root", fmt.Sprintf("%d x %s", times, name), func(t *testing.T) row {
			return besiege(t, program, times, request)
		})
	}
}

func besiege(t *testing.T, program string, times int, request string) row {
	t.Helper()
	config := filepath.Join(public(t), "tcpdiag.yml")
	require.NoError(t, os.WriteFile(config, []byte("targets: []\n"), 0o644))
	s := newScene(t, viewer{name: "root"}, program, "--all", "--web.config.file", passwords(t), "--web.enable-lifecycle", "--config", config)
	s.look(t)
	var waiting sync.WaitGroup
	var connected atomic.Int32
	for range 20 {
		waiting.Go(func() {
			for range times / 20 {
				c, err := s.dial(t.Context(), "tcp", agentAddress)
				if err != nil {
					continue
				}
				connected.Add(1)
				t.Cleanup(func() { _ = c.Close() })
				waiting.Go(func() { _, _ = io.WriteString(c, request) })
			}
		})
	}
	done := make(chan struct{})
	go func() { waiting.Wait(); close(done) }()
	for busy := true; busy; {
		s.look(t)
		select {
		case <-done:
			busy = false
		default:
		}
	}
	s.look(t)
	return s.finish(t, fmt.Sprintf("answered its friend beside %d connections", connected.Load()))
}

// passwords is a file by which the agent has two users.
func passwords(t *testing.T) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), 10)
	require.NoError(t, err)
	web := filepath.Join(public(t), "web.yml")
	require.NoError(t, os.WriteFile(web, fmt.Appendf(nil, "basic_auth_users:\n  u: %s\n  v: %[1]s\n", hash), 0o644))
	return web
}

// authorised adds what the agent's friend knows.
func authorised(r *http.Request) *http.Request {
	r.SetBasicAuth("u", "right")
	return r
}
