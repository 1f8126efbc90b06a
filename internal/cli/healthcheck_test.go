package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/agent"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// idle is a sampler that has seen nothing yet: the agent is healthy all the same.
type idle struct{}

func (idle) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (idle) Snapshot() *model.Snapshot     { return nil }
func (idle) Next() <-chan struct{}         { return nil }
func (idle) PutAgent(func(*model.Agent))   {}

// serveAgent runs the agent's own server until the test ends; it returns its
// host and port.
func serveAgent(t *testing.T, webConfig string) string {
	t.Helper()
	address := nettest.FreeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- agent.Run(ctx, idle{}, agent.Options{
			Listen: []string{address}, ConfigFile: webConfig, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return address
}

// certificate writes cert.pem and key.pem for a name that is not loopback's.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"app.example"},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: der},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

func TestHealthcheckOfAnAgent(t *testing.T) {
	const (
		password = "basic_auth_users:\n  someone: $2y$05$abcdefghijklmnopqrstuuCl5Zjy8t1tQxzUQCNbZ5MUjzBr2OPRm\n"
		secured  = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
		mutual   = secured + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: cert.pem\n"
	)
	tests := map[string]struct{ web, scheme, want string }{
		"plain":                       {"", "http", "answers"},
		"password":                    {password, "http", "asks for a password"},
		"https":                       {secured, "https", "answers"},
		"https and password":          {secured + password, "https", "asks for a password"},
		"client certificate":          {mutual, "https", "asks for a client certificate"},
		"client certificate, TLS 1.2": {mutual + "  max_version: TLS12\n", "https", "asks for a client certificate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := ""
			if tt.web != "" {
				dir := t.TempDir()
				certificate(t, dir)
				file = filepath.Join(dir, "web.yml")
				require.NoError(t, os.WriteFile(file, []byte(tt.web), 0o600))
			}
			address := tt.scheme + "://" + serveAgent(t, file)
			code, stdout, stderr := call("healthcheck", "--address", address)
			require.Zero(t, code, stderr)
			require.Equal(t, "healthy: "+address+"/-/healthy "+tt.want+"\n", stdout)
			t.Setenv(healthAddressEnv, address+"/")
			code, again, _ := call("healthcheck")
			require.Zero(t, code)
			require.Equal(t, stdout, again, "the environment gives the same address")
		})
	}
}

func TestHealthcheckUnhealthy(t *testing.T) {
	answers := func(fn http.HandlerFunc) string {
		server := httptest.NewServer(fn)
		t.Cleanup(server.Close)
		return server.URL
	}
	elsewhere := answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	t.Setenv("HTTP_PROXY", elsewhere)
	tests := map[string]struct {
		address string
		code    int
		want    string
	}{
		"nobody listens": {nobody.URL, 1, "connection refused"},
		"another server": {answers(http.NotFound), 1, "404 Not Found: 404 page not found"},
		"an error": {answers(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "broken\nin detail", http.StatusInternalServerError)
		}), 1, "500 Internal Server Error: broken"},
		"elsewhere": {answers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusFound)
		}), 1, "302 Found"},
		"not TLS":      {strings.Replace(elsewhere, "http:", "https:", 1), 1, "server gave HTTP response to HTTPS client"},
		"proxy":        {"http://agent.invalid:10889", 1, "agent.invalid"},
		"no scheme":    {"127.0.0.1:10889", 2, `--address "127.0.0.1:10889": give a URL such as http://127.0.0.1:10889`},
		"other scheme": {"ftp://127.0.0.1", 2, "give a URL such as"},
		"no host":      {"http:///x", 2, "give a URL such as"},
		"password":     {"http://a:secret@127.0.0.1:10889", 2, `"http://a:xxxxx@127.0.0.1:10889": give it without user and password`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call("healthcheck", "--address", tt.address)
			require.Equal(t, tt.code, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %q", stderr)
		})
	}
}

// An agent that does not answer is found out after 2 s, within the 5 s that
// HEALTHCHECK allows, also when it has asked for a certificate before.
func TestHealthcheckOfASilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // its queue takes the connection, nobody accepts
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	started := time.Now()
	code, _, stderr := call("healthcheck", "--address", "http://"+silent.Addr().String())
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "deadline exceeded")
	require.GreaterOrEqual(t, time.Since(started), healthTimeout)
	require.Less(t, healthTimeout, 5*time.Second)
}
