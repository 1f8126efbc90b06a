package kube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a connection to a port of a pod's, by the API server and the kubelet: over a
// websocket, or SPDY where the server is too old for that (before Kubernetes 1.30).
func (c *Client) tunnel(ctx context.Context, a Agent) (net.Conn, error) {
	u := c.rest.Post().AbsPath(podPath(a.Namespace, a.Pod, "portforward")).URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, c.config)
	if err != nil {
		return nil, err
	}
	dialer = portforward.NewFallbackDialerForStreaming(dialer, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	conn, err := dial(ctx, dialer)
	if err != nil {
		return nil, explain(err, access{"create", "", "pods/portforward", a.Namespace})
	}
	headers := http.Header{}
	headers.Set(core.StreamType, core.StreamTypeError)
	headers.Set(core.PortHeader, strconv.Itoa(a.Port))
	headers.Set(core.PortForwardRequestIDHeader, "0")
	complaints, err := conn.CreateStream(headers)
	if err == nil {
		_ = complaints.Close() // nothing is written to it
		headers.Set(core.StreamType, core.StreamTypeData)
		var data httpstream.Stream
		if data, err = conn.CreateStream(headers); err == nil {
			return &tunneled{data, conn, a.Port}, nil
		}
	}
	_ = conn.Close()
	return nil, fmt.Errorf("port %d cannot be forwarded: %s", a.Port, Printable(err))
}

// dial does not wait beyond ctx, which the dialers know nothing of.
func dial(ctx context.Context, dialer httpstream.Dialer) (httpstream.Connection, error) {
	type result struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// tunneled is a stream as a connection. It has no deadlines: whoever waits closes it.
type tunneled struct {
	httpstream.Stream
	conn httpstream.Connection
	port int
}

// Close ends the stream and the connection that it is in.
func (t *tunneled) Close() error {
	_ = t.Reset()
	return t.conn.Close()
}

// LocalAddr is nowhere.
func (t *tunneled) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr is the port within the pod.
func (t *tunneled) RemoteAddr() net.Addr { return &net.TCPAddr{Port: t.port} }

// SetDeadline does nothing.
func (t *tunneled) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (t *tunneled) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (t *tunneled) SetWriteDeadline(time.Time) error { return nil }
