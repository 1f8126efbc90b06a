package promexport

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Two formats.
const (
	text        = "text/plain"
	openMetrics = "application/openmetrics-text"
)

func keyOf(accept string) string {
	return string(expfmt.NegotiateAccept(http.Header{"Accept": {accept}}, expfmt.DefaultOpenMetricsAcceptedFormats()...))
}

// counting answers with how often it was asked.
func counting(size int, code int) (http.Handler, *atomic.Int64) {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, "%d%s", asked.Add(1), strings.Repeat(".", size))
	}), &asked
}

func ask(t *testing.T, h http.Handler, accept, query string) string {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics"+query, nil)
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return string(body)
}

func TestScrapesOfOneSnapshotShareAnAnswer(t *testing.T) {
	next, asked := counting(0, http.StatusOK)
	var snap atomic.Pointer[model.Snapshot]
	h := sharing(next, snap.Load)
	require.Equal(t, "1", ask(t, h, text, ""))
	require.Equal(t, "2", ask(t, h, text, ""), "nothing is published yet")

	now := time.Now()
	snap.Store(&model.Snapshot{Time: now})
	var scrapers sync.WaitGroup
	for range 16 {
		scrapers.Go(func() {
			if got := ask(t, h, text, ""); got != "3" {
				t.Error(got)
			}
		})
	}
	scrapers.Wait()
	require.Equal(t, "4", ask(t, h, openMetrics, ""))
	require.Equal(t, "3", ask(t, h, text, ""))
	require.Equal(t, "3", ask(t, h, text, "?x=1"), "the same question")
	require.Equal(t, "5", ask(t, h, text, "?name[]=tcpdiag_target_up"), "another question")

	snap.Store(&model.Snapshot{Time: now.Add(time.Millisecond)})
	require.Equal(t, "6", ask(t, h, text, ""), "another snapshot")
	require.EqualValues(t, 6, asked.Load())
}

func TestSharedAnswerGrowsOld(t *testing.T) {
	next, _ := counting(0, http.StatusOK)
	snap := &model.Snapshot{Time: time.Now()}
	h := sharing(next, func() *model.Snapshot { return snap })
	require.Equal(t, "1", ask(t, h, text, ""))
	k := h.answers[keyOf(text)]
	k.made = k.made.Add(-sharedFor)
	h.answers[keyOf(text)] = k
	require.Equal(t, "2", ask(t, h, text, ""), "an agent that is blind still reports on itself")
}

func TestSharedAnswersAreBounded(t *testing.T) {
	snap := &model.Snapshot{Time: time.Now()}
	source := func() *model.Snapshot { return snap }
	next, _ := counting(0, http.StatusOK)
	h := sharing(next, source)
	for i := range 100 {
		ask(t, h, fmt.Sprintf("text/%d", i), "")
		require.Len(t, h.answers, 1, "they get the same format")
	}
	for _, version := range []string{"0.0.1", "1.0.0"} {
		for _, escaping := range []string{"allow-utf-8", "underscores", "dots", "values", "none"} {
			ask(t, h, "application/openmetrics-text; version="+version+"; escaping="+escaping, "")
			require.LessOrEqual(t, len(h.answers), maxShared)
		}
	}
	require.Equal(t, "1", ask(t, h, "text/0", ""), "others' formats take nobody's place")

	next, _ = counting(maxSharedSize, http.StatusOK)
	h = sharing(next, source)
	ask(t, h, text, "")
	require.Empty(t, h.answers, "too large")
	next, _ = counting(0, http.StatusInternalServerError)
	h = sharing(next, source)
	ask(t, h, text, "")
	require.Empty(t, h.answers, "no answer")
}
