package promexport

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "identity": false, "deflate, gzip;q=0.5, br": true, "gzip ; q=1.0": true,
		"gzip;q=0": false, "gzip; q=0.0, identity": false, "gzip;q=x": true, "x-gzip": false, "*": false, "zstd,gzip": true,
	} {
		require.Equal(t, want, acceptsGzip([]string{value}), "%q", value)
	}
	require.True(t, acceptsGzip([]string{"br", "gzip"}), "two lines of the header")
	require.False(t, acceptsGzip(nil))
}

// get asks a handler as a scraper would, and undoes the compression.
func get(t *testing.T, h http.Handler, path, encoding string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	h.ServeHTTP(w, r)
	if w.Header().Get("Content-Encoding") != "gzip" {
		return w, w.Body.String()
	}
	require.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
	plain, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	body, err := io.ReadAll(plain)
	require.NoError(t, err)
	return w, string(body)
}

// echo answers with the path, many times.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	switch r.URL.Path {
	case "/error":
		http.Error(w, "no", http.StatusTeapot)
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = io.WriteString(w, strings.Repeat(r.URL.Path, 10_000))
	}
}

func TestCompressor(t *testing.T) {
	h := compressing(http.HandlerFunc(echo))
	w, body := get(t, h, "/a", "gzip")
	require.Equal(t, strings.Repeat("/a", 10_000), body)
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	require.Equal(t, "text/plain", w.Header().Get("Content-Type"))
	require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))

	w, body = get(t, h, "/b", "identity")
	require.Equal(t, strings.Repeat("/b", 10_000), body)
	require.Empty(t, w.Header().Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"), "a cache must not mix them up")

	w, body = get(t, h, "/error", "gzip")
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "no\n", body)
	w, body = get(t, h, "/nothing", "gzip")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Empty(t, body)
	require.Empty(t, w.Header().Get("Content-Encoding"))
}

func TestCompressorIsShared(t *testing.T) {
	h := compressing(http.HandlerFunc(echo))
	var scrapers sync.WaitGroup
	for i := range 16 {
		scrapers.Go(func() {
			path := "/" + strconv.Itoa(i)
			for range 20 {
				if _, body := get(t, h, path, "gzip"); body != strings.Repeat(path, 10_000) {
					t.Errorf("%s was answered with another's", path)
				}
			}
		})
	}
	scrapers.Wait()
}

// stuck is a scraper that does not read.
type stuck struct {
	httptest.ResponseRecorder
	writing chan struct{}
	until   context.Context //nolint:containedctx // a test's end
}

func (s *stuck) Write([]byte) (int, error) {
	close(s.writing)
	<-s.until.Done()
	return 0, s.until.Err()
}

// TestStuckScraperHoldsUpNobody: the compressor is free while an answer is sent.
func TestStuckScraperHoldsUpNobody(t *testing.T) {
	h := compressing(http.HandlerFunc(echo))
	ctx, cancel := context.WithCancel(t.Context())
	w := &stuck{ResponseRecorder: *httptest.NewRecorder(), writing: make(chan struct{}), until: ctx}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/slow", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	var slow sync.WaitGroup
	slow.Go(func() { h.ServeHTTP(w, r) })
	<-w.writing
	_, body := get(t, h, "/quick", "gzip")
	require.Equal(t, strings.Repeat("/quick", 10_000), body)
	cancel()
	slow.Wait()
}
