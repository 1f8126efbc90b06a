package agent

import (
	"bytes"
	"net/http"
	"net/http/pprof"

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
	lasting := streams{shares.NewPlaces(maxStreams, ledger.Resource("streams"))}
	mux.Handle("GET /metrics", made.serve(promexport.Handler(promexport.NewRegistry(withShares(ledger, withIncidents(recorder, reloads.withState(snapshot))), o.Now(), build), o.Log)))
	mux.Handle("GET /api/v1/snapshot", made.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	mux.Handle("GET /{$}", made.serve(http.HandlerFunc(page.Page)))
	mux.HandleFunc("GET /assets/", page.Asset)
	mux.HandleFunc("GET /api/v1/stream", lasting.serve(page.Stream(made.turn)))
	if o.Profile {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return secured(ownHost(o.AllowedHosts, http.NewCrossOriginProtection().Handler(mux)))
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
