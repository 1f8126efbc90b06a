package promexport_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

func netipLoopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

func handler(s *model.Snapshot) http.Handler {
	return promexport.Handler(promexport.NewRegistry(source(s), time.Unix(1_700_000_000, 0), promexport.Build{Version: "1.2.3"}), slog.New(slog.DiscardHandler))
}

// answer is a scrape's.
type answer struct {
	header http.Header
	body   string
}

func scrape(t testing.TB, h http.Handler, header map[string]string) answer {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	return answer{w.Header(), w.Body.String()}
}

const (
	acceptOpenMetrics = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4"
	acceptProtobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// ours drops the Go and process collectors' lines, which change from run to run.
func ours(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if regexp.MustCompile(`^(# (HELP|TYPE|UNIT) )?tcpdiag_`).MatchString(line) && !strings.Contains(line, "tcpdiag_build_info") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestTextExposition(t *testing.T) {
	res := scrape(t, handler(fleet(1)), nil)
	require.Contains(t, res.header.Get("Content-Type"), "text/plain; version=0.0.4")
	golden.Equal(t, "testdata/overload.prom", ours(res.body))
}

func TestOpenMetricsExposition(t *testing.T) {
	res := scrape(t, handler(fleet(1)), map[string]string{"Accept": acceptOpenMetrics})
	require.Contains(t, res.header.Get("Content-Type"), "application/openmetrics-text; version=1.0.0")
	got := res.body
	require.True(t, strings.HasSuffix(got, "# EOF\n"))
	golden.Equal(t, "testdata/overload.om", ours(got))
}

func TestBuildInfo(t *testing.T) {
	require.Regexp(t, `tcpdiag_build_info\{goarch="\w+",goos="\w+",goversion="go1[^"]+",revision="",version="1.2.3"\} 1`,
		scrape(t, handler(nil), nil).body)
}

// The fill histogram has classic and native buckets, and both say the same.
func TestProtobufExposition(t *testing.T) {
	s := fleet(1)
	res := scrape(t, handler(s), map[string]string{"Accept": acceptProtobuf})
	require.Contains(t, res.header.Get("Content-Type"), "application/vnd.google.protobuf")
	families := decode(t, res)
	h := families["tcpdiag_listener_accept_queue_fill_ratio"].GetMetric()[0].GetHistogram()
	require.EqualValues(t, 7, h.GetSampleCount())
	require.InDelta(t, 2.76, h.GetSampleSum(), 1e-9)

	cumulative := make(map[float64]uint64)
	for _, b := range h.GetBucket() {
		cumulative[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	require.Equal(t, map[float64]uint64{0: 2, .1: 3, .5: 5, .8: 5, 1: 7}, cumulative)

	require.EqualValues(t, 3, h.GetSchema())
	require.EqualValues(t, 2, h.GetZeroCount())
	require.InDelta(t, prometheus.DefNativeHistogramZeroThreshold, h.GetZeroThreshold(), 0)
	// .01 is in (2^(-54/8), 2^(-53/8)], .25 = 2^(-16/8), .5 = 2^(-8/8), 1 = 2^0.
	require.Equal(t, map[int]int64{-53: 1, -16: 1, -8: 1, 0: 2}, expand(h))
}

func decode(t *testing.T, res answer) map[string]*dto.MetricFamily {
	t.Helper()
	dec := expfmt.NewDecoder(strings.NewReader(res.body), expfmt.ResponseFormat(res.header))
	out := make(map[string]*dto.MetricFamily)
	for {
		var f dto.MetricFamily
		err := dec.Decode(&f)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out[f.GetName()] = &f
	}
}

// expand reads spans and deltas as Prometheus does.
func expand(h *dto.Histogram) map[int]int64 {
	out := make(map[int]int64)
	index, count, delta := 0, int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			count += h.GetPositiveDelta()[delta]
			out[index] = count
			index++
			delta++
		}
	}
	return out
}

// A histogram without samples must already be native, or Prometheus would
// create it as a classic one.
func TestAnEmptyHistogramIsNative(t *testing.T) {
	s := fleet(1)
	s.Listeners[0].Totals.Fill = model.FillHistogram{}
	h := decode(t, scrape(t, handler(s), map[string]string{"Accept": acceptProtobuf}))["tcpdiag_listener_accept_queue_fill_ratio"].GetMetric()[0].GetHistogram()
	require.Positive(t, h.GetZeroThreshold())
	require.Len(t, h.GetBucket(), 5)
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed: apt-get install prometheus")
		}
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(ours(scrape(t, handler(fleet(2)), nil).body))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}

func TestAScrapeCanBeCompressed(t *testing.T) {
	res := scrape(t, handler(fleet(1)), map[string]string{"Accept-Encoding": "gzip"})
	require.Equal(t, "gzip", res.header.Get("Content-Encoding"))
	z, err := gzip.NewReader(strings.NewReader(res.body))
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = b.ReadFrom(z)
	require.NoError(t, err)
	require.True(t, ours(scrape(t, handler(fleet(1)), nil).body) == ours(b.String()), "the same, compressed")
}

func TestScrapesAtTheSameTime(t *testing.T) {
	h := handler(fleet(20))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				if w.Code != http.StatusOK {
					t.Errorf("status %d", w.Code)
				}
			}
		})
	}
	wg.Wait()
}
