package observability

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A message as Alertmanager 0.25 sends it, cut down.
const message = `{"receiver":"pager","status":"firing","version":"4","groupKey":"{}:{}",
 "alerts":[{"status":"firing","labels":{"alertname":"A","job":"j"},"annotations":{"summary":"s"},"fingerprint":"f"},
           {"status":"resolved","labels":{"alertname":"B"},"annotations":{}}]}`

func TestReceiver(t *testing.T) {
	var told []Notification
	r, err := StartReceiver(t.Context(), "127.0.0.1:0", func(n Notification) { told = append(told, n) })
	require.NoError(t, err)
	defer r.Stop()
	require.Equal(t, http.StatusOK, post(t, r.URL()+"/pager", message))
	require.Equal(t, http.StatusBadRequest, post(t, r.URL()+"/pager", "{"))
	got := r.Got()
	require.Len(t, got, 2)
	require.Equal(t, "pager", got[0].Receiver)
	require.Equal(t, "A", got[0].Labels["alertname"])
	require.Equal(t, "s", got[0].Annotations["summary"])
	require.Equal(t, "resolved", got[1].Status)
	require.Equal(t, got, told)
}

func post(t *testing.T, url, body string) int {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

func TestPoint(t *testing.T) {
	var p point
	require.NoError(t, p.UnmarshalJSON([]byte(`[1435781430.781,"1.5"]`)))
	require.Equal(t, 1.5, p.value)
	require.Equal(t, int64(1435781430781), p.at.UnixMilli())
	require.Error(t, p.UnmarshalJSON([]byte(`["x","1"]`)))
	require.Error(t, p.UnmarshalJSON([]byte(`[1,"x"]`)))
}
