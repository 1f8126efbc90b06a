package deployments

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofEnded are reports of servers that end connections without an answer.
func ofEnded() []report {
	return []report{
		{"D", "https://github.com/reactor/reactor-netty/issues/1221", "connection-timeout=20 is 20 ms: the server ends connections whose request takes longer to come", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.connection-timeout=20")
			c.Answers("127.0.0.1:8080")
			var answered, ended atomic.Int64
			for range 10 {
				keep(c, func() error { return later(c.Ctx, 500*time.Millisecond, &answered, &ended) })
			}
			c.Until("connections are ended", func() bool { return ended.Load() > 20 })
			c.Both(rig.Port, "losing server_resets").Names("a client has 20 ms for its request (server.tomcat.connection-timeout)", "closed by the server").Silent("gave up waiting inside", "maxSwallowSize", "max-swallow-size")
			c.Row.Truth = fmt.Sprintf("%s; clients send their request after 500 ms: %d answered, %d ended without an answer", s.Says(rig.Port), answered.Load(), ended.Load())
		}},
		{"D", "https://github.com/moby/moby/issues/13847", "a forwarder (docker-proxy) accepts, and ends the connection, as nobody listens where it passes it on to", func(c *rig.Case) {
			c.Program("python3", "-c", `import socket, threading
s = socket.create_server(("0.0.0.0", 8080), backlog=100)
def serve(c):
    try: socket.create_connection(("127.0.0.1", 9001))
    except OSError: pass
    c.close()
while True:
    conn, _ = s.accept(); threading.Thread(target=serve, args=(conn,)).start()`)
			c.Answers("127.0.0.1:8080")
			var answered, ended atomic.Int64
			for range 10 {
				keep(c, func() error { return later(c.Ctx, 0, &answered, &ended) })
			}
			c.Until("connections are ended", func() bool { return ended.Load() > 20 })
			c.Both(rig.Port, "losing server_resets").Names("where nobody listens at the address that it passes them on to").Silent("maxSwallowSize", "Tomcat")
			c.Row.Truth = fmt.Sprintf("%d answered, %d reset or ended without an answer", answered.Load(), ended.Load())
		}},
	}
}

// later asks once, a while after it has connected.
func later(ctx context.Context, pause time.Duration, answered, ended *atomic.Int64) error {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	defer conn.Close()
	rig.Wait(ctx, pause)
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err = io.WriteString(conn, rig.Get("/hello")); err == nil {
		var r *http.Response
		if r, err = http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			err = r.Body.Close()
		}
	}
	if err != nil {
		ended.Add(1)
		return err
	}
	answered.Add(1)
	return nil
}
