package promexport_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

func BenchmarkGather200(b *testing.B) {
	reg := promexport.NewRegistry(source(fleet(200)), promexport.Build{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScrape200(b *testing.B) {
	h := promexport.Handler(promexport.NewRegistry(source(fleet(200)), promexport.Build{}), slog.Default())
	for _, gz := range []string{"identity", "gzip"} {
		b.Run(gz, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequest("GET", "/metrics", nil)
				r.Header.Set("Accept-Encoding", gz)
				h.ServeHTTP(w, r)
				b.ReportMetric(float64(w.Body.Len()), "bytes")
			}
		})
	}
}

func TestX(t *testing.T) {
	reg := promexport.NewRegistry(source(fleet(1)), promexport.Build{})
	_, err := reg.Gather()
	require.NoError(t, err)
	h := promexport.Handler(reg, slog.Default())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	t.Log(w.Body.String())
	_ = gzip.NewReader
	_ = io.Discard
}
