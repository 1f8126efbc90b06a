package agent

import (
	"bytes"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/shares"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// handler answers every request from the published snapshot: none of them asks
// the kernel or waits for a scan, but for a reload. unready says why there is no
// snapshot.
func handler(snapshot func() *model.Snapshot, unready func() string, reloads *reloader, recorder *incident.Recorder, page *web.Server, ledger *shares.Ledger, o Options) http.Handler {
	mux := http.NewServeMux()
	build := promexport.Build{Version: version.Version, Revision: version.Revision}
	made := newMakers(ledger)
	lasting := streams{shares.NewSlots(maxStreams, ledger.Resource("streams"))}
	mux.Handle("GET /metrics", made.serve(promexport.Handler(promexport.NewRegistry(snapshot, o.Now(), build), o.Log)))
	mux.Handle("GET /api/v1/snapshot", made.once(snapshot, func(*http.Request, *model.Snapshot) string { return "snapshot" }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		serveSnapshot(w, snapshot(), o)
	})))
	incidents := &incidents{recorder, page, o.Log}
	mux.Handle("GET /api/v1/incidents", made.serve(http.HandlerFunc(incidents.list)))
	mux.Handle("GET /api/v1/incidents/{id}", made.serve(http.HandlerFunc(incidents.one)))
	mux.HandleFunc("GET /api/v1/incidents/{id}/recording", incidents.recording)
	mux.Handle("GET /incidents/{id}", made.serve(http.HandlerFunc(incidents.report)))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { serveHealthy(w, o.Healthy) })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) { serveReady(w, snapshot(), unready, o.Stopping) })
	mux.HandleFunc("POST /-/reload", reloads.serve(o.Lifecycle))
	mux.Handle("GET /{$}", made.once(snapshot, page.Question, http.HandlerFunc(page.Page)))
	mux.HandleFunc("GET /assets/", page.Asset)
	mux.HandleFunc("GET /api/v1/stream", lasting.serve(page.Stream(made.turn)))
	if o.Profile {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return secured(hostChecked(o.AllowedHosts, http.NewCrossOriginProtection().Handler(mux)))
}

// serveHealthy says whether the agent itself runs, and nothing about the servers
// that it watches: an overload must not restart it.
func serveHealthy(w http.ResponseWriter, healthy func() error) {
	if healthy != nil {
		if err := healthy(); err != nil {
			reply(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
	}
	reply(w, http.StatusOK, "tcpdiag is healthy\n")
}

// serveReady says 200 from the first scan until the agent is asked to stop.
func serveReady(w http.ResponseWriter, s *model.Snapshot, unready func() string, stopping <-chan struct{}) {
	select {
	case <-stopping:
		reply(w, http.StatusServiceUnavailable, "tcpdiag is stopping\n")
		return
	default:
	}
	if s == nil {
		reply(w, http.StatusServiceUnavailable, unready()+"\n")
		return
	}
	reply(w, http.StatusOK, "tcpdiag is ready\n")
}

// serveSnapshot is the JSON of the trailing window, with the age of its scan.
func serveSnapshot(w http.ResponseWriter, s *model.Snapshot, o Options) {
	if s == nil {
		reply(w, http.StatusServiceUnavailable, "the first scan is not done\n")
		return
	}
	aged := *s
	aged.ScanAge = new(o.Now().Sub(s.Time))
	var body bytes.Buffer
	if err := render.JSON(&body, &aged); err != nil {
		o.Log.Error("snapshot", "err", err)
		reply(w, http.StatusInternalServerError, "the snapshot cannot be written as JSON\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body.Bytes())
}

func reply(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// secured sets the headers that keep a browser from being used against the
// agent. What the web configuration sets stays.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "deny",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if w.Header().Get(name) == "" {
				w.Header().Set(name, value)
			}
		}
		h.ServeHTTP(w, r)
	})
}

// hostChecked keeps pages of other sites from reading the agent by DNS rebinding: a browser that
// was sent to an attacker's name, which then resolves to the agent's address, takes both for
// one origin. So a browser is served under names that no stranger can have in public DNS:
// addresses, localhost, the machine's name, names without a dot and those of a cluster's
// services, and what allowed adds. Programs that are no browsers may use any name, and a name
// that a TLS certificate was checked against is the agent's.
func hostChecked(allowed []string, h http.Handler) http.Handler {
	hostname, err := os.Hostname()
	if err == nil {
		allowed = append(slices.Clone(allowed), hostname)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && fromBrowser(r) && !isAllowedHost(r.Host, allowed) {
			reply(w, http.StatusMisdirectedRequest, "tcpdiag does not serve a browser under this name: use the address, or start the agent with --web.allowed-host NAME\n")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// fromBrowser: a page can change the values of these headers, and cannot leave
// Accept-Language away (Fetch Standard, HTTP-network-or-cache fetch).
func fromBrowser(r *http.Request) bool {
	for _, name := range []string{"Accept-Language", "Origin", "Referer", "Sec-Fetch-Mode", "Sec-Fetch-Site"} {
		if _, ok := r.Header[name]; ok {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

func isAllowedHost(host string, allowed []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return true
	}
	for _, end := range []string{".localhost", ".svc", ".svc.cluster.local"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(name, strings.TrimSuffix(a, ".")) })
}
