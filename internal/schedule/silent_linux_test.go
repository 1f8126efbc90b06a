package schedule

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Of three idle connections one has had a request and its response; the clients
// of the others have sent nothing yet.
func TestSilentClients(t *testing.T) {
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	var clients, accepted []net.Conn
	l.Do(func() {
		clients = nettest.Queue(t, server.Addr, 3)
		accepted = server.Accept(t, 3)
	})
	port := clients[0].LocalAddr().(*net.TCPAddr).Port
	for _, c := range accepted {
		if c.RemoteAddr().(*net.TCPAddr).Port != port {
			continue
		}
		answer(t, clients[0], c)
	}
	require.Eventually(t, func() bool {
		c := only(t, l.scan(t)).Connections
		return c.Phases[model.Idle] == 3 && c.Silent == 2
	}, time.Minute, 20*time.Millisecond)
}

// answer sends a request and its response.
func answer(t *testing.T, client, server net.Conn) {
	t.Helper()
	buf := make([]byte, 8)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		_, err := way[0].Write(buf)
		require.NoError(t, err)
		_, err = way[1].Read(buf)
		require.NoError(t, err)
	}
}
