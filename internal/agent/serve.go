package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// maxHeader bounds a request's header; net/http adds 4 KiB.
const maxHeader = 16 << 10

// newServer bounds what one connection can cost.
func newServer(ctx context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		MaxHeaderBytes:    maxHeader,
		ReadTimeout:       10 * time.Second,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 8, MaxReadFrameSize: 16 << 10},
		ConnState:         noteState,
		ConnContext:       withConn,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

// serve serves on every address until the server is shut down.
func serve(server *http.Server, ledger *shares.Ledger, o Options) error {
	if err := configure(server, ledger, o); err != nil {
		return fmt.Errorf("agent: web config %q: %w", o.ConfigFile, err)
	}
	server.Handler = bodiless(server.Handler)
	listeners, err := listen(o, ledger)
	if err != nil {
		return fmt.Errorf("agent: serve: %w", err)
	}
	tls := usesTLS(server) // net/http writes to the server once it serves
	var g errgroup.Group
	for _, l := range listeners {
		o.Log.Info("listening", "address", l.Addr().String(), "tls", tls)
		l.tls = tls
		g.Go(func() error { return serveOn(l, server) })
	}
	return g.Wait()
}

// usesTLS says that the toolkit has set up TLS; net/http alone sets a TLSConfig
// for HTTP/2, without certificates.
func usesTLS(server *http.Server) bool {
	return server.TLSConfig != nil && server.TLSConfig.GetConfigForClient != nil
}

func serveOn(l *boundedListener, server *http.Server) error {
	defer func() { _ = l.Close() }()
	var err error
	if l.tls {
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	_ = server.Close() // one address less is a failure of them all
	return fmt.Errorf("agent: serve: %w", err)
}

// configure has the toolkit set up TLS and basic auth, and puts the guard in
// front of what it made. The toolkit does so when it serves, which is why it is
// given a listener that has ended.
func configure(server *http.Server, ledger *shares.Ledger, o Options) error {
	if o.ConfigFile == "" {
		return nil
	}
	g := newGuard(ledger)
	server.Handler = g.after(server.Handler)
	quiet := false
	flags := &web.FlagConfig{WebListenAddresses: &o.Listen, WebSystemdSocket: &quiet, WebConfigFile: &o.ConfigFile}
	if err := web.Serve(ended{}, server, flags, o.Log); !errors.Is(err, errEnded) {
		return err
	}
	server.Handler = g.before(server.Handler)
	return nil
}

// errEnded ends the toolkit's serving.
var errEnded = errors.New("not a listener")

// ended is a listener that accepts nothing.
type ended struct{}

func (ended) Accept() (net.Conn, error) { return nil, errEnded }
func (ended) Close() error              { return nil }
func (ended) Addr() net.Addr            { return &net.TCPAddr{} }
