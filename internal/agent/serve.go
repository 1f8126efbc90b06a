package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
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
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 8, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 16 << 10, // nobody sends a body
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: maxReading,
		},
		ConnState:   noteState,
		ConnContext: withConn,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		// net/http would answer "OPTIONS *" before any handler, and wait for its body.
		DisableGeneralOptionsHandler: true,
	}
}

// serve serves on every address until the server is shut down.
func serve(server *http.Server, ledger *shares.Ledger, o Options) error {
	if err := configure(server, ledger, o); err != nil {
		return fmt.Errorf("agent: web config %q: %w", o.ConfigFile, err)
	}
	server.Handler, server.ErrorLog = bodiless(server.Handler), newErrorLog(o.Log)
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

// bodyAnswer refuses a request that comes with a body.
const bodyAnswer = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\nno body is expected\r\n"

// bodiless refuses at once what comes with a body: no request needs one, and net/http
// waits for the body, up to ReadTimeout, before it answers and before it takes the next
// request (response.finishRequest). The connection is closed at once for the same reason.
func bodiless(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil { // HTTP/2: only this stream ends
			reply(w, http.StatusRequestEntityTooLarge, "no body is expected\n")
			return
		}
		_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = io.WriteString(c, bodyAnswer)
		_ = c.Close()
	})
}

// listen opens the listeners that the options name. Each has its own bound on
// connections.
func listen(o Options, ledger *shares.Ledger) ([]*boundedListener, error) {
	if o.SystemdSocket {
		passed, err := activation.Listeners()
		if err == nil && len(passed) == 0 {
			err = fmt.Errorf("systemd passed no socket")
		}
		return bounded(passed, ledger), err
	}
	var out []net.Listener
	for _, address := range o.Listen {
		l, err := listenOn(address)
		if err != nil {
			for _, l := range out {
				_ = l.Close()
			}
			return nil, err
		}
		out = append(out, l)
	}
	return bounded(out, ledger), nil
}

// listenOn takes an address, or vsock://:PORT.
func listenOn(address string) (net.Listener, error) {
	port, virtual := strings.CutPrefix(address, "vsock://:")
	if !virtual {
		return net.Listen("tcp", address) //nolint:noctx // it does not wait
	}
	n, err := strconv.ParseUint(port, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q: give vsock://:PORT", address)
	}
	return vsock.Listen(uint32(n), nil)
}

func bounded(listeners []net.Listener, ledger *shares.Ledger) []*boundedListener {
	out := make([]*boundedListener, len(listeners))
	for i, l := range listeners {
		out[i] = newBoundedListener(l, ledger)
	}
	return out
}

// Linger returns a context that is done this long after ctx is, or with end: until
// then a scrape still sees the end of the server in the same pod. Without a
// delay it is ctx.
func Linger(ctx context.Context, delay time.Duration, log *slog.Logger) (lingering context.Context, end context.CancelFunc) {
	if delay <= 0 {
		return ctx, func() {}
	}
	lingering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		log.Info("tcpdiag agent stops after the shutdown delay; a second signal stops it at once", "shutdown-delay", delay)
		time.AfterFunc(delay, cancel)
	})
	return lingering, func() { stop(); cancel() }
}

// maxStreams is how many open pages are kept current.
const maxStreams = 64

// streams serves what lasts. It has a bound of its own: a connection that has a slot in
// it no longer counts among those of the port, and ends with it. Over HTTP/2 it has
// others' requests, too, and counts.
type streams struct{ slots *shares.Slots }

func (s streams) serve(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		conn := boundedBy(r)
		slot := s.slots.Take(shares.Client(r.RemoteAddr), func() {
			end()
			if conn != nil && r.ProtoMajor == 1 { // it may be waiting for its client to read
				_ = conn.shut()
			}
		})
		if slot == nil {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open and updated: close one, or reload this one by hand\n", maxStreams))
			return
		}
		defer slot.Leave()
		if conn != nil && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
			conn.apart()
		}
		h(w, r.WithContext(ctx))
	}
}
