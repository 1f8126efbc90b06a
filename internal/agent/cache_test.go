package agent

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// However many clients ask, an answer is made once of each snapshot, and again when it is old. An answer
// to a question of its own is made for it, and takes no other's place.
func TestAnswersAreMadeOnce(t *testing.T) {
	var made atomic.Int64
	var snap atomic.Pointer[model.Snapshot]
	snap.Store(&model.Snapshot{})
	m := newMakers(testLedger())
	now := time.Now()
	m.cache.now = func() time.Time { return now }
	question := func(r *http.Request, _ *model.Snapshot) string { return r.URL.Query().Get("q") }
	h := m.once(snap.Load, question, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x")
		_, _ = fmt.Fprint(w, made.Add(1))
	}))
	ask := func(client int, q string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?q="+q, nil)
		r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", client)
		h.ServeHTTP(w, r)
		require.Equal(t, "text/x", w.Header().Get("Content-Type"))
		body, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		return string(body)
	}
	var all sync.WaitGroup
	for client := range 50 {
		all.Go(func() {
			for range 10 {
				if got := ask(client, "a"); got != "1" {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, "2", ask(1, "b"))
	require.Equal(t, "3", ask(1, ""))
	require.Equal(t, "4", ask(1, ""))
	for i := range 100 {
		ask(1, fmt.Sprint(i))
		require.LessOrEqual(t, len(m.cache.answers), maxCached)
	}
	require.Equal(t, "1", ask(1, "a"), "others' questions take nobody's place")
	snap.Store(&model.Snapshot{})
	require.Equal(t, "105", ask(1, "a"), "of another snapshot")
	now = now.Add(cachedFor)
	require.Equal(t, "106", ask(1, "a"), "it says how old it is")
}

// What is kept is bounded in bytes, however large each is.
func TestCachedAnswersAreBounded(t *testing.T) {
	m := newMakers(testLedger())
	of := &model.Snapshot{}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	for i := range 2 * maxCached {
		m.cache.make(fmt.Sprint(i), of, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		held := 0
		for _, p := range m.cache.answers {
			if p.answer != nil {
				held += p.body.Len()
			}
		}
		require.LessOrEqual(t, held, maxCachedBytes)
	}
}

// Large answers that nobody asks for any more take no room.
func TestOldAnswersMakeRoom(t *testing.T) {
	m := newMakers(testLedger())
	now := time.Now()
	m.cache.now = func() time.Time { return now }
	made := 0
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { made++; _, _ = w.Write(make([]byte, maxCachedBytes)) })
	of := &model.Snapshot{}
	ask := func(q string) {
		m.cache.make(q, of, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	ask("old")
	now = now.Add(cachedFor)
	for range 3 {
		ask("new")
	}
	require.Equal(t, 2, made)
}
