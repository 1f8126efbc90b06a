package draws

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// proxied starts what stands before the server, if the draw has it, and says where.
func (w *world) proxied() string {
	if !w.draw.proxy {
		return ""
	}
	target := &url.URL{Scheme: "http", Host: fmt.Sprint("127.0.0.1:", rig.Port)}
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{MaxIdleConnsPerHost: w.draw.users, DialContext: (&net.Dialer{Timeout: w.draw.connect}).DialContext, ResponseHeaderTimeout: w.draw.reply}
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.Must(err)
	server := &http.Server{Handler: proxy} //nolint:gosec // the draw's own clients
	go func() { _ = server.Serve(listener) }()
	w.later(func() { _ = server.Close(); transport.CloseIdleConnections() })
	return listener.Addr().String()
}
