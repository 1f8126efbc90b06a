package owner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestPoolPort(t *testing.T) {
	type result struct {
		port      uint16
		known, ok bool
	}
	for comm, want := range map[string]result{
		"http-nio-8080-e":  {8080, true, true},
		"http-nio-8080-A":  {8080, true, true},
		"http-nio-80-exe":  {80, true, true},
		"http-nio-18080-":  {18080, true, true},
		"http-nio2-8080-":  {8080, true, true},
		"http-apr-8080-e":  {8080, true, true},
		"http-bio-8080-e":  {8080, true, true},
		"ajp-nio-8009-ex":  {8009, true, true},
		"https-jsse-nio-":  {0, false, true},
		"https-jsse-nio2":  {0, false, true},
		"https-openssl-n":  {0, false, true},
		"http-nio-127.0.":  {0, false, true}, // server.address
		"http-nio-auto-1":  {0, false, true}, // port 0
		"ajp-nio-127.0.0":  {0, false, true},
		"http-nio-8080":    {},
		"http-nio-99999-":  {0, false, true},
		"http-nio-0-exec":  {0, false, true},
		"http-client-thr":  {},
		"http-8080-exec-":  {},
		"":                 {},
		"http":             {},
		"http-nio-":        {},
		"qtp123-8080-x-y":  {},
		"catalina-exec-1":  {},
		"XNIO-1 task-1":    {},
		"reactor-http-nio": {},
	} {
		port, known, ok := poolPort(comm)
		require.Equal(t, want, result{port, known, ok}, comm)
	}
}

func FuzzPoolPort(f *testing.F) {
	m := mutate.Into(f)
	m.Add("http-nio-8080-e")
	m.Add("https-jsse-nio-")
	m.Fuzz(func(t *testing.T, comm string) {
		port, known, ok := poolPort(comm)
		require.False(t, known && (!ok || port == 0))
	})
}
