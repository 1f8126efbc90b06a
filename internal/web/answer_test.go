package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// losing has an answer.
func losing() model.Listener {
	l := listener(8080, model.StatusLosing)
	l.Process = &model.Process{PID: 42, Comm: "java"}
	l.Limits[1].Used, l.Limits[1].Ratio = 20, 1
	l.Losses = &model.Losses{DroppedPackets: 9, By: []model.Drops{{DropKey: model.DropKey{Cause: model.CauseMaxConnections}, Packets: 9}}}
	l.Verdict.Chain = []model.Cause{model.CauseAcceptQueue, model.CauseMaxConnections, model.CauseMaxThreads}
	l.Verdict.Answer = model.Answer{
		What: "34 of 60 <clients> got no answer.", Why: "All threads are busy.", Not: "acceptCount.",
		Do: []model.Step{
			{Text: "See what they wait for", Command: `sudo -u app tcpdiag snapshot`},
			{Text: "Raise it", Setting: "server.tomcat.threads.max", From: "20", To: "40", File: "application.yml", Effect: "with 40 threads all are served"},
			{Text: "Raise the", Setting: "server's listen backlog", To: "10"},
		},
	}
	return l
}

func TestAnswerOnThePage(t *testing.T) {
	var s published
	s.Store(snapshotOf(losing()))
	_, server := serve(t, &s)
	_, body := get(t, server.URL)
	for _, want := range []string{
		`<a href="?port=8080&amp;process=java">Losing clients on :8080</a>`, "34 of 60 &lt;clients&gt; got no answer.",
		`data-copy="sudo -u app tcpdiag snapshot"`, `data-copy="server.tomcat.threads.max=40"`, "now 20, from application.yml",
		"Predicted: with 40 threads all are served", "Raise the: server&#39;s listen backlog 10", "<b>Not</b> acceptCount.",
		`<span class="tag drops">packets drop here</span><span class="dim">accept queue</span>`,
		`<span class="tag">fix this first</span><span class="dim">threads</span>`,
		`<details><summary>`, "03:04:05 UTC", "tcpdiag 1.2.3",
	} {
		require.Contains(t, body, want)
	}
	require.Regexp(t, `(?s)got no answer\..*<b>Why</b>.*Do, in this order.*<b>Not</b>`, body, "in the order of all surfaces")
}

// A warning is not always of a limit.
func TestHeadlineOfAWarning(t *testing.T) {
	l := losing()
	l.Verdict.Status = model.StatusWarning
	for cause, want := range map[model.Cause]string{
		model.CauseOpenFiles: "Soon full: :8080", model.CauseSlowAccept: "Soon full: :8080", model.CauseNotReading: "Warning: :8080", model.CauseNone: "Warning: :8080",
	} {
		l.Verdict.Cause = cause
		require.Equal(t, want, headline(&l), cause)
	}
}

// What is copied can be pasted where it is set.
func TestSettingsAreCopiedAsTheyAreWritten(t *testing.T) {
	for want, step := range map[string]model.Step{
		"server.tomcat.threads.max=20": {Setting: "server.tomcat.threads.max", To: "20"}, `maxThreads="20"`: {Setting: "maxThreads", To: "20"},
		"LimitNOFILE=50": {Setting: "LimitNOFILE", To: "50"}, "sysctl -w net.core.somaxconn=50": {Setting: "net.core.somaxconn", To: "50", Command: "sysctl -w net.core.somaxconn=50"},
		"": {Setting: "CPU limit", To: "2"},
	} {
		require.Equal(t, want, newStep(step).Copy)
	}
}

// "10" at the end of one line and "s." alone on the next is read twice.
func TestNoLineEndsBeforeAUnit(t *testing.T) {
	for text, want := range map[string]string{
		"in the last 10 s.": "in the last 10\u00a0s.", "59 % are turned away": "59\u00a0% are turned away", "after 1 s; now 61 %": "after 1\u00a0s; now 61\u00a0%",
		"9 of 20 connections, 4 sockets": "9 of 20 connections, 4 sockets", "1 min": "1\u00a0min", "27 MiB)": "27\u00a0MiB)",
	} {
		require.Equal(t, want, Sentence(text))
	}
}

// A link is by port and process: another process on the port, or none, is what it was
// saved for, another server's page is not.
func TestLinksOutliveTheServer(t *testing.T) {
	was := losing()
	link := permalink(&was)
	var s published
	_, server := serve(t, &s)
	again := losing()
	again.ID.NetNS, again.Process = 99, &model.Process{PID: 77, Comm: "java"}
	other := listener(9090, model.StatusOK)
	s.Store(snapshotOf(again, other))
	_, body := get(t, server.URL+"/"+link)
	require.Contains(t, body, "java 77")
	require.NotContains(t, body, ":9090")
	down := model.Listener{Port: 8080, Verdict: model.Verdict{Status: model.StatusDown}}
	s.Store(snapshotOf(down, other))
	_, body = get(t, server.URL+"/"+link)
	require.Contains(t, body, "Nothing listens on port 8080")
	resp, body := get(t, server.URL+"/?port=8080&process=nginx")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, "Nothing listens on port 8080", "who listened there is not known any more")
}

// The charts have a time axis and values for the crosshair, of as long as was chosen.
func TestChartsOfAMinute(t *testing.T) {
	h := incident.NewHistory()
	l := losing()
	for i := range 200 {
		l.AcceptQueue.Peak = new(i % 22)
		s := snapshotOf(l)
		s.Time = now.Add(time.Duration(i) * time.Second)
		h.Observe(s)
	}
	v := newView(snapshotOf(l), h, choiceOf(map[string][]string{"minutes": {"1"}}), "1.2.3", now)
	c := v.Cards[0].Charts()
	require.Equal(t, 120, c.From)
	require.Equal(t, 60, c.Columns)
	require.Equal(t, []string{"03:06:24", "03:06:44", "03:07:04", "03:07:24"}, c.Times)
	require.Regexp(t, `^([0-9]*,){59}[0-9]*$`, c.Lines[1].Values)
	require.Equal(t, "21", c.Lines[1].Top)
	require.Equal(t, []bool{true, false, false}, []bool{v.Pasts[0].Chosen, v.Pasts[1].Chosen, v.Pasts[2].Chosen})
	require.Equal(t, "api/v1/stream?minutes=1", v.Stream)
}

// What led to a port's being down stays to be seen.
func TestPastOfAPortThatIsDown(t *testing.T) {
	h := incident.NewHistory()
	for i := range 20 {
		l := listener(8080, model.StatusOK)
		if i >= 10 {
			l = model.Listener{ID: model.ListenerID{NetNS: 7}, Port: 8080, Verdict: model.Verdict{Status: model.StatusDown}}
		}
		s := snapshotOf(l)
		s.Time = now.Add(time.Duration(i) * time.Second)
		h.Observe(s)
	}
	down := model.Listener{ID: model.ListenerID{NetNS: 7}, Port: 8080, Verdict: model.Verdict{Status: model.StatusDown}}
	points := h.Before(&down)
	require.Len(t, points, 20)
	require.Equal(t, model.StatusOK, points[0].Status)
	require.Equal(t, model.StatusDown, points[19].Status)
}
