package tap

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Clients that do not accept the server's certificate are counted, and nobody else: neither who is answered, nor who connects and
// sends nothing more, nor who speaks no TLS.
func TestTLSEnded(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, w world) {
		server, to := w.secured(t)
		tap := w.tap(t, to.Port())
		if w.oneWay {
			isOneWay(t, tap)
		}
		trusting := server.Client().Transport.(*http.Transport).TLSClientConfig
		ask := func(config *tls.Config, request string) (err error) {
			w.clients.Do(func() {
				var c net.Conn
				c, err = net.DialTimeout("tcp", to.String(), time.Minute)
				require.NoError(t, err)
				defer c.Close()
				if config != nil {
					s := tls.Client(c, config)
					if err = s.Handshake(); err != nil {
						return
					}
					c = s
				}
				_, err = io.WriteString(c, request)
				require.NoError(t, err)
				if request != "" {
					_, err = io.ReadAll(c)
				}
			})
			return err
		}
		const get, each = "GET / HTTP/1.0\r\n\r\n", 20
		fail := uint64(0)
		if w.oneWay {
			reads := func() bool {
				tap.mu.Lock()
				defer tap.mu.Unlock()
				return !tap.reading.NoHellos
			}
			require.False(t, reads(), "nobody has begun TLS")
			require.Eventually(t, func() bool {
				trust := trusting.Clone()
				trust.ServerName = "example.com"
				require.NoError(t, ask(trust, get))
				tap.mu.Lock()
				defer tap.mu.Unlock()
				return tap.helloAt > 0
			}, time.Minute, time.Millisecond)
			require.Never(t, func() bool { return !reads() }, helloEvery, 100*time.Millisecond)
		}
		for range each { // of some ports all is read
			require.NoError(t, ask(nil, get))
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				trust := trusting.Clone()
				trust.MaxVersion, trust.ServerName, trust.ClientSessionCache = version, "example.com", tls.NewLRUClientSessionCache(2)
				for _, request := range []string{get, get, ""} { // the second resumes a session
					require.NoError(t, ask(trust, request))
				}
				other := trust.Clone()
				other.ServerName, other.ClientSessionCache = "other.test", nil
				for _, refuses := range []*tls.Config{{MaxVersion: version, ServerName: "example.com"}, other} { //nolint:gosec // 1.2 is meant
					require.Error(t, ask(refuses, get))
					fail++
				}
			}
		}
		require.Eventually(t, func() bool { return countedAt(t, tap, to).TLSEnded >= fail }, time.Minute, 10*time.Millisecond, "of %d", fail)
		require.Equal(t, fail, countedAt(t, tap, to).TLSEnded)
		require.GreaterOrEqual(t, countedAt(t, tap, to).TLSBegun, uint64(10*each), "of each version five")
	}
	on(t, "loopback", "127.0.0.1", try)
	on(t, "IPv6 loopback", "::1", try)
	across(t, "veth", nettest.Veth, try)
	across(t, "IPv6", vethIPv6, try)
	acrossOneWay(t, try)
}

// Clients that begin TLS at a regular interval, as health checks do, are met by the search for ClientHellos, whenever they have begun.
func TestHelloSearch(t *testing.T) {
	const turns, step = 60, 100 * time.Millisecond
	for every := time.Second; every <= time.Minute; every += time.Second {
		if every%helloEvery == 0 { // 47 s
			continue
		}
		for begun := time.Duration(0); begun < helloEvery; begun += step {
			met := 0
			for i := range turns {
				if searchesHello(begun + time.Duration(i)*every) {
					met++
				}
			}
			require.GreaterOrEqual(t, met, 5, "every %v, the first after %v", every, begun)
		}
	}
	require.Greater(t, helloFor, time.Minute+helloSearch, "who comes each minute is met again")
}

// secured serves with TLS.
func (w world) secured(t *testing.T) (s *httptest.Server, to netip.AddrPort) {
	w.server.Do(func() {
		s = httptest.NewUnstartedServer(http.NotFoundHandler())
		require.NoError(t, s.Listener.Close())
		var err error
		s.Listener, err = net.Listen("tcp", netip.AddrPortFrom(w.addr, 0).String())
		require.NoError(t, err)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
	})
	t.Cleanup(s.Close)
	return s, s.Listener.Addr().(*net.TCPAddr).AddrPort()
}

// Of a ClientHello the first byte is read, of no other segment any.
func TestHelloMark(t *testing.T) {
	for name, tt := range map[string]struct {
		addr    string
		reading packet.Reading
	}{
		"IPv4":          {"127.0.0.1", packet.Reading{}},
		"IPv6":          {"::1", packet.Reading{}},
		"IPv4, skipped": {"127.0.0.1", packet.Reading{OneWay: true, NoHellos: true}},
		"IPv6, skipped": {"::1", packet.Reading{OneWay: true, NoHellos: true}},
	} {
		t.Run(name, func(t *testing.T) {
			ns := nettest.Namespace(t)
			w := world{server: ns, clients: ns, addr: netip.MustParseAddr(tt.addr)}
			l := w.listen(t, 100)
			var r *ring
			ns.Do(func() {
				var err error
				r, err = openRing(packet.Filter([]uint16{l.Addr.Port()}, tt.reading), large())
				require.NoError(t, err)
			})
			defer func() { require.NoError(t, r.close()) }()
			const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03secret"
			sent := []string{hello, hello[:8], "\x16\x03\x03\x00\x28\x02\x00secret", "\x17\x03\x03\x02\x00\x01\x00secret", "GET /secret HTTP/1.1\r\n\r\n", "\x16"}
			marked, ends := 0, 0
			const each = 32 // of some ports all is read
			for _, text := range sent {
				for range each {
					var c net.Conn
					ns.Do(func() {
						var err error
						c, err = net.Dial("tcp", l.Addr.String())
						require.NoError(t, err)
					})
					_, err := io.WriteString(c, text)
					require.NoError(t, err)
					require.NoError(t, c.Close())
					require.NoError(t, l.Accept(t, 1)[0].Close())
				}
				require.Eventually(t, func() bool {
					r.read(func(_ time.Duration, b []byte, link packet.Link) {
						s, err := packet.Decode(b, link)
						require.NoError(t, err)
						extra := 0
						if s.Hello {
							extra = 1
							marked++
							require.Equal(t, len(hello), s.Payload)
							require.Equal(t, hello[0], b[len(b)-1])
						}
						require.Equal(t, link.Length-s.Payload+extra, len(b))
						if s.Flags&packet.FlagFIN != 0 && s.DstPort == l.Addr.Port() {
							ends++
						}
					})
					return ends >= each
				}, time.Minute, time.Millisecond)
				ends = 0
			}
			want := each // in only one of the texts is a ClientHello
			if tt.reading.NoHellos {
				want = 0
			}
			require.Equal(t, want, marked)
		})
	}
}
