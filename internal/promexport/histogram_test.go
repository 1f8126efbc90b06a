package promexport

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestSparse(t *testing.T) {
	tests := map[string]struct {
		buckets map[int]uint64
		spans   [][2]int // offset, length
		deltas  []int64
	}{
		"none":         {nil, [][2]int{}, []int64{}},
		"one":          {map[int]uint64{5: 3}, [][2]int{{5, 1}}, []int64{3}},
		"negative":     {map[int]uint64{-128: 3}, [][2]int{{-128, 1}}, []int64{3}},
		"neighbours":   {map[int]uint64{-1: 3, 0: 1, 1: 1}, [][2]int{{-1, 3}}, []int64{3, -2, 0}},
		"with a gap":   {map[int]uint64{-53: 1, -16: 1, 0: 2}, [][2]int{{-53, 1}, {36, 1}, {15, 1}}, []int64{1, 0, 1}},
		"gap after 2s": {map[int]uint64{1: 5, 2: 4, 4: 4}, [][2]int{{1, 2}, {1, 1}}, []int64{5, -1, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spans, deltas := sparse(tt.buckets)
			got := [][2]int{}
			for _, s := range spans {
				got = append(got, [2]int{int(s.GetOffset()), int(s.GetLength())})
			}
			require.Equal(t, tt.spans, got)
			require.Equal(t, tt.deltas, deltas)
		})
	}
}

// FuzzFillHistogram holds what Prometheus demands of a native histogram:
// whatever was observed, spans and deltas decode to the buckets, no bucket is
// negative, and zero bucket and buckets add up to the count.
func FuzzFillHistogram(f *testing.F) {
	f.Add([]byte{0, 1, 2, 100, 255})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, lengths []byte) {
		var h model.FillHistogram
		for i, n := range lengths {
			h.Observe(float64(n) / float64(1+i*i))
		}
		got := fillHistogram(&h)
		index, count, next, total := 0, int64(0), 0, got.GetZeroCount()
		decoded := make(map[int]uint64)
		for i, span := range got.GetPositiveSpan() {
			require.True(t, i == 0 || span.GetOffset() > 0, "spans neither touch nor overlap")
			index += int(span.GetOffset())
			for range span.GetLength() {
				count += got.GetPositiveDelta()[next]
				require.Positive(t, count)
				decoded[index] = uint64(count)
				total += uint64(count)
				index++
				next++
			}
		}
		require.Len(t, got.GetPositiveDelta(), next)
		require.Equal(t, h.Native(), decoded)
		require.Equal(t, got.GetSampleCount(), total)
		last := uint64(0)
		for _, b := range got.GetBucket() {
			require.GreaterOrEqual(t, b.GetCumulativeCount(), last)
			last = b.GetCumulativeCount()
		}
		require.LessOrEqual(t, last, got.GetSampleCount())
	})
}

// broken is a collector that fails at each scrape.
type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(out chan<- *prometheus.Desc) { out <- b.desc }
func (b broken) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.NewInvalidMetric(b.desc, errors.New("planted"))
}

func TestAnErrorDoesNotBlindTheScrape(t *testing.T) {
	var log strings.Builder
	r := NewRegistry(func() *model.Snapshot { return &model.Snapshot{Omitted: 7} }, time.Unix(1_700_000_000, 0), Build{})
	r.library.MustRegister(broken{prometheus.NewDesc("broken", "Broken.", nil, nil)})
	h := Handler(r, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), "tcpdiag_omitted_listeners 7")
		require.Contains(t, w.Body.String(), "go_goroutines")
	}
	require.Contains(t, log.String(), "planted")
	families, err := r.Gather()
	require.ErrorContains(t, err, "promexport: ")
	require.Contains(t, names(families), "promhttp_metric_handler_errors_total")
}

func names(families []*dto.MetricFamily) []string {
	out := make([]string, len(families))
	for i, f := range families {
		out[i] = f.GetName()
	}
	return out
}
