package agent

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However a request says how long it is, and a proxy in front may understand it: what comes behind it is never a request of
// its own. The connection is closed after one answer, which is none of the handler's.
func TestNothingIsSmuggled(t *testing.T) {
	const second = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, request := range map[string]string{
		"length and chunks":               "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks and length":               "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"a length of none and chunks":     "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":                     "Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
		"two lengths in one":              "Content-Length: 0, 5\r\n\r\n",
		"the same length twice":           "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
		"a signed length":                 "Content-Length: +5\r\n\r\nabcde",
		"a negative length":               "Content-Length: -1\r\n\r\n",
		"a length in hex":                 "Content-Length: 0x5\r\n\r\nabcde",
		"a length beyond 64 bits":         "Content-Length: 18446744073709551616\r\n\r\n",
		"an empty length":                 "Content-Length: \r\n\r\n",
		"a space before the colon":        "Content-Length : 5\r\n\r\nabcde",
		"chunks, a space before":          "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"chunks, a vertical tab":          "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
		"chunks and more":                 "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"chunks twice":                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"identity":                        "Transfer-Encoding: identity\r\n\r\n",
		"no such coding":                  "Transfer-Encoding: xchunked\r\n\r\n",
		"a folded header":                 "X: a\r\n Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
		"a folded first header":           " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a header without a name":         ": x\r\n\r\n",
		"a line without a colon":          "GET /smuggled HTTP/1.1\r\n\r\n",
		"a carriage return alone":         "X: a\rTransfer-Encoding: chunked\r\n\r\n",
		"a zero byte":                     "X: a\x00b\r\n\r\n",
		"an extension without end":        "Transfer-Encoding: chunked\r\n\r\n0;a=\"\r\n\r\n",
		"a chunk of a negative size":      "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
		"chunks with a trailer":           "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\n",
		"a length, to be expected":        "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nabcde",
		"another protocol, with a length": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 5\r\n\r\nabcde",
	} {
		t.Run(name, func(t *testing.T) {
			var smuggled, asked atomic.Int32
			l, address := boundedServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if r.URL.Path == "/smuggled" {
					smuggled.Add(1)
				}
			}))
			c := dial(t, address)
			_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n"+request+second)
			require.NoError(t, err)
			answers, err := io.ReadAll(io.LimitReader(c, 1<<20))
			if err == nil { // else the rest was answered with a reset, which takes the answer along
				require.Equal(t, 1, bytes.Count(answers, []byte("HTTP/1.1 ")), "%s", answers)
				require.Regexp(t, `^HTTP/1\.1 (4|5)\d\d `, string(answers))
			}
			require.Zero(t, smuggled.Load())
			require.Zero(t, asked.Load(), "%s", answers)
			require.Eventually(t, func() bool { return l.held() == 0 }, time.Minute, time.Millisecond)
		})
	}
}

// certified writes a certificate of localhost, and the configuration that names it.
func certified(t *testing.T) (configuration string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	file := func(name, kind string, bytes []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
	}
	file("cert", "CERTIFICATE", der)
	file("key", "PRIVATE KEY", secret)
	configuration = filepath.Join(dir, "web.yml")
	require.NoError(t, os.WriteFile(configuration, []byte("tls_server_config: {cert_file: cert, key_file: key}\n"), 0o600))
	return configuration
}

// What TLS of the configuration's defaults does not speak: versions before 1.2, suites without forward secrecy, and the
// same port without TLS.
func TestOldTLSIsRefused(t *testing.T) {
	server := newServer(t.Context(), bodiless(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "here\n") })))
	require.NoError(t, configure(server, testLedger(), Options{ConfigFile: certified(t), Log: slog.New(slog.DiscardHandler)}))
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	l := newBoundedListener(listenLocal(t), testLedger())
	require.True(t, usesTLS(server))
	l.tls = true
	done := make(chan error, 1)
	go func() { done <- serveOn(l, server) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-done)
	})
	handshake := func(c *tls.Config) error {
		c.InsecureSkipVerify = true
		client := tls.Client(dial(t, l.Addr().String()), c)
		return client.HandshakeContext(t.Context())
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		require.NoError(t, handshake(&tls.Config{MinVersion: version, MaxVersion: version}))
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		require.Error(t, handshake(&tls.Config{MinVersion: version, MaxVersion: version}), "%x", version)
	}
	for _, suite := range tls.InsecureCipherSuites() {
		require.Error(t, handshake(&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}}), suite.Name)
	}
	plain := dial(t, l.Addr().String())
	_, err := io.WriteString(plain, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.False(t, strings.Contains(string(answer), "here"), "%s", answer)
}
