package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A page whose own name resolves to the agent's address (DNS rebinding) can neither read nor
// reload; whoever is no browser may use any name.
func TestRebinding(t *testing.T) {
	o := options(time.Now())
	o.AllowedHosts = []string{"diag.corp.example"}
	h := serving(new(stage), o)
	browser := http.Header{"Accept-Language": {""}}
	for _, tt := range []struct {
		host   string
		header http.Header
		want   int
	}{
		{"attacker.example", browser, http.StatusMisdirectedRequest},
		{"attacker.example:10889", http.Header{"Sec-Fetch-Site": {"same-origin"}}, http.StatusMisdirectedRequest},
		{"127.0.0.1.attacker.example", http.Header{"User-Agent": {"Mozilla/5.0"}}, http.StatusMisdirectedRequest},
		{"svc.attacker.example", http.Header{"Origin": {"http://svc.attacker.example"}}, http.StatusMisdirectedRequest},
		{"attacker.example", http.Header{"User-Agent": {"Prometheus/3.5.0"}}, http.StatusOK},
		{"attacker.example", nil, http.StatusOK},
		{"127.0.0.1:10889", browser, http.StatusOK},
		{"[::1]:10889", browser, http.StatusOK},
		{"[fd00::7]", browser, http.StatusOK},
		{"localhost:10889", browser, http.StatusOK},
		{"tcpdiag:10889", browser, http.StatusOK},
		{"tcpdiag.monitoring.svc:10889", browser, http.StatusOK},
		{"tcpdiag.monitoring.svc.cluster.local.", browser, http.StatusOK},
		{"Diag.corp.example:443", browser, http.StatusOK},
		{"", browser, http.StatusOK},
	} {
		for _, path := range []string{"/-/healthy", "/assets/page.js"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host, r.Header = tt.host, tt.header.Clone()
			if r.Header == nil {
				r.Header = http.Header{}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, tt.want, w.Code, "%s %v %s", tt.host, tt.header, path)
			require.NotContains(t, w.Body.String(), "attacker")
		}
	}
}
