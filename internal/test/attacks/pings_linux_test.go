package attacks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// webConfig is a file with which the agent speaks TLS, and HTTP/2.
func webConfig(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := public(t)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "both.pem"), text, 0o644))
	file := filepath.Join(dir, "web.yml")
	require.NoError(t, os.WriteFile(file, []byte("tls_server_config: {cert_file: both.pem, key_file: both.pem}\n"), 0o644))
	return file
}

// TestLongPings: 200 connections of 40 addresses speak HTTP/2, send pings as fast as they may, and never read
// the answers.
func TestLongPings(t *testing.T) {
	nettest.Root(t)
	program, last := build(t), 4*time.Second
	if everything() {
		last = time.Minute
	}
	header(t)
	attempt(t, "root", "pings that nobody reads", func(t *testing.T) row {
		s := newScene(t, viewer{name: "root"}, program, "--all", "--web.config.file="+webConfig(t))
		from := s.addresses(t, 41)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var opened atomic.Int64
		for i := range 200 {
			go s.ping(ctx, from[1+i%40], &opened)
		}
		asked, answered := s.friendAsks(ctx, from[0], friendly{last: last, least: 1, every: 500 * time.Millisecond})
		cancel()
		part := 0.99
		if !everything() { // signatures take their time beside whatever else the machine does
			part = 0.5
		}
		require.GreaterOrEqual(t, answered, part*float64(asked), "of %d", asked)
		return s.finish(t, fmt.Sprintf("%.0f of %d answers for another address beside %d connections", answered, asked, opened.Load()))
	})
}

// ping opens a connection, pings until it is closed, and begins again.
func (s *scene) ping(ctx context.Context, from netip.Addr, opened *atomic.Int64) {
	pings := strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 100)
	for ctx.Err() == nil {
		raw, err := s.dialFrom(ctx, from)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if _, err = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err == nil {
			opened.Add(1)
		}
		for err == nil && ctx.Err() == nil {
			_ = c.SetWriteDeadline(time.Now().Add(15 * time.Second))
			_, err = io.WriteString(c, pings)
			time.Sleep(10 * time.Millisecond) // more than is read by far
		}
		_ = raw.Close()
	}
}
