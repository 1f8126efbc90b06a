package agent

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

//go:embed landing.html
var landingPage string

// landing is what the page shows.
type landing struct {
	Host      string
	Age       string
	Notes     []string
	Listeners []landingListener
	Omitted   int
}

type landingListener struct {
	Address, Process, Status, Cause, Summary string
	Queue                                    string
	Fill                                     int // percent
}

// serveLanding shows what is watched and how it stands: plain HTML, no script,
// nothing loaded from elsewhere.
func serveLanding(w http.ResponseWriter, s *model.Snapshot, now time.Time) {
	page, err := template.New("landing").Parse(landingPage)
	if err != nil {
		reply(w, http.StatusInternalServerError, "the landing page is broken\n")
		return
	}
	var body bytes.Buffer
	if err := page.Execute(&body, newLanding(s, now)); err != nil {
		reply(w, http.StatusInternalServerError, "the landing page is broken\n")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	_, _ = w.Write(body.Bytes())
}

func newLanding(s *model.Snapshot, now time.Time) landing {
	if s == nil {
		return landing{Notes: []string{"The first scan is not done yet."}}
	}
	page := landing{
		Host: s.Host, Notes: s.Notes, Omitted: s.Omitted,
		Age: fmt.Sprintf("%.1f s", now.Sub(s.Time).Seconds()),
	}
	for i := range s.Listeners {
		page.Listeners = append(page.Listeners, newLandingListener(&s.Listeners[i]))
	}
	return page
}

func newLandingListener(l *model.Listener) landingListener {
	out := landingListener{
		Address: l.ID.String(), Status: l.Verdict.Status.String(),
		Cause: string(l.Verdict.Cause), Summary: model.Printable(l.Verdict.Summary),
	}
	if !l.Listening() {
		out.Address = fmt.Sprintf("port %d", l.Port)
	}
	if l.Process != nil {
		out.Process = fmt.Sprintf("%s %d", model.Printable(l.Process.Comm), l.Process.PID)
	}
	if q := l.AcceptQueue; q != nil {
		out.Queue = fmt.Sprintf("%d of %d", q.Length, q.Capacity())
		out.Fill = min(100, int(100*q.Ratio()))
	}
	return out
}
