package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/common/version"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/shares"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// describe puts how the recording of incidents stands, and what strangers share, into the facts,
// until ctx is done.
func describe(ctx context.Context, s Observer, recorder *incident.Recorder, ledger *shares.Ledger) error {
	for ctx.Err() == nil {
		next := s.Next()
		incidents, counts := recorder.State(), ledger.Counts()
		s.PutAgent(func(a *model.Agent) { a.Incidents, a.Shares = &incidents, counts })
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
	return nil
}

func newRecorder(s Observer, ledger *shares.Ledger, o Options) *incident.Recorder {
	return incident.NewRecorder(incident.Options{
		Snapshot: s.Snapshot, Next: s.Next, Dir: o.IncidentDir, Group: o.IncidentGroup, Limits: o.IncidentLimits,
		Version: version.Version, Shares: ledger, Log: o.Log, Now: o.Now,
	})
}

// incidents answers requests for recordings.
type incidents struct {
	recorder *incident.Recorder
	page     *web.Server
	log      *slog.Logger
}

func (i *incidents) list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := render.IncidentsJSON(w, i.recorder.List()); err != nil {
		i.log.Error("incidents", "err", err)
	}
}

func (i *incidents) one(w http.ResponseWriter, r *http.Request) {
	s, ok := i.story(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := render.IncidentJSON(w, s); err != nil {
		i.log.Error("incident", "id", s.Header.ID, "err", err)
	}
}

func (i *incidents) report(w http.ResponseWriter, r *http.Request) {
	if s, ok := i.story(w, r); ok {
		i.page.Incident(w, s)
	}
}

// recording is the file itself, for tcpdiag report and replay.
func (i *incidents) recording(w http.ResponseWriter, r *http.Request) {
	in, ok := i.open(w, r)
	if !ok {
		return
	}
	defer func() { _ = in.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("id")+`.tcpdiag"`)
	_, _ = io.Copy(newPaced(w), in)
}

func (i *incidents) open(w http.ResponseWriter, r *http.Request) (io.ReadCloser, bool) {
	in, err := i.recorder.Open(r.PathValue("id"))
	switch {
	case errors.Is(err, incident.ErrUnknown):
		reply(w, http.StatusNotFound, "there is no such incident: /api/v1/incidents lists them\n")
	case err != nil:
		i.log.Warn("incident", "err", err)
		reply(w, http.StatusInternalServerError, "the recording cannot be opened\n")
	}
	return in, err == nil
}

func (i *incidents) story(w http.ResponseWriter, r *http.Request) (*story.Story, bool) {
	in, ok := i.open(w, r)
	if !ok {
		return nil, false
	}
	defer func() { _ = in.Close() }()
	s, err := story.Read(in)
	if err != nil {
		reply(w, http.StatusUnprocessableEntity, "the recording cannot be read: "+model.Printable(err.Error())+"\n")
		return nil, false
	}
	s.Summary.ID = r.PathValue("id")
	s.Going = i.recorder.Going(s.Summary.ID)
	return s, true
}
