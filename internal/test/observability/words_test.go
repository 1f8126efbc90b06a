package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A cause is shown in words: why, of one listener, and in the table of all.
func TestEveryCauseHasWords(t *testing.T) {
	causes := append(model.DropCauses(),
		model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseBacklogClamped, model.CauseListenerClosed,
		model.CauseNoListener, model.CauseEphemeralPorts, model.CauseConnectionPool, model.CauseDownstream,
		model.CauseNotReading, model.CauseBeforeListener, model.CauseListensElsewhere, model.CauseServerResets, model.CauseLossyNetwork)
	eachDrawing(t, func(t *testing.T, p *drawing) {
		for _, cause := range causes {
			switch p.Title {
			case "Why":
				require.Equal(t, "{{cause}}", p.Targets[0].LegendFormat)
				require.NotNil(t, p.overridden(string(cause), "displayName"), cause)
			case "Listeners, worst first":
				require.Contains(t, string(p.overridden("Cause", "mappings")), `"`+string(cause)+`"`)
			}
		}
	})
}

// The columns of a table have units of their own: "short" made 14 K of 13,870
// packets.
func TestColumnsReadWell(t *testing.T) {
	units := map[string]string{
		"Drops": "count:/s", "Turned away": "count:/s", "Packets": "locale", "Clients": "locale",
		"Used": "locale", "Limit": "locale", "Full": "percentunit", "Room in use": "percentunit",
	}
	seen := make(map[string]bool)
	eachDrawing(t, func(t *testing.T, p *drawing) {
		for _, o := range p.FieldConfig.Overrides {
			if want := units[o.Matcher.Options]; p.Type == "table" && want != "" && o.Matcher.ID == "byName" {
				require.Equal(t, `"`+want+`"`, string(p.overridden(o.Matcher.Options, "unit")), o.Matcher.Options)
				seen[o.Matcher.Options] = true
			}
		}
	})
	require.Len(t, seen, len(units))
}

// What was lost is red, and open files are a share: 160 of a million is a flat line.
func TestLossesAndFilesAreSeen(t *testing.T) {
	seen := make(map[string]bool)
	eachDrawing(t, func(t *testing.T, p *drawing) {
		switch p.Title {
		case "Dropped now", "Packets dropped", "Losing", "Ports down":
			steps := p.FieldConfig.Defaults.Thresholds.Steps
			require.Contains(t, steps[len(steps)-1].Color, "red")
		case "Open files":
			require.Equal(t, "percentunit", p.FieldConfig.Defaults.Unit)
			require.Contains(t, p.Targets[0].Expr, "/ tcpdiag_process_open_files_limit{")
		default:
			return
		}
		seen[p.Title] = true
	})
	require.Len(t, seen, 5)
}

// Alerts are drawn in steps that Grafana joins to one region over hours; only
// pages unless the reader asks for more.
func TestAnnotations(t *testing.T) {
	for _, name := range []string{"backlog", "fleet"} {
		b, err := os.ReadFile(filepath.Join(dashboardsDir, name+".json"))
		require.NoError(t, err)
		var d struct {
			Annotations struct {
				List []struct {
					Name, Expr, Step string
					Enable           bool
				}
			}
		}
		require.NoError(t, json.Unmarshal(b, &d))
		for _, a := range d.Annotations.List {
			if a.Expr != "" {
				require.Equal(t, "60s", a.Step, a.Name)
				require.Equal(t, a.Name == "Pages", a.Enable, a.Name)
			}
		}
	}
}

// Every alert leads to the dashboard that shows it, at an address of the reader's own
// where Prometheus has it as an external label, and to the section on its cause.
func TestAlertsLinkToADashboard(t *testing.T) {
	var uids []string
	for _, d := range dashboards(t) {
		uids = append(uids, d.UID)
	}
	_, alerting := rules(t)
	sections := sections(t)
	for _, a := range alerting {
		path, _, _ := strings.Cut(strings.TrimPrefix(a.Annotations["dashboard_url"], "{{ $externalLabels.grafana }}"), "?")
		uid, ok := strings.CutPrefix(path, "/d/")
		require.True(t, ok && slices.Contains(uids, uid), a.Alert)
		if strings.Contains(a.Annotations["summary"], "if the trend continues") {
			require.Contains(t, a.Annotations["summary"], "within a minute", "in 0s is no prediction")
		}
		require.Equal(t, strings.Contains(a.Annotations["summary"], "$labels.listener"), uid == "tcpdiag-backlog", a.Alert)

		_, anchor, found := strings.Cut(a.Annotations["runbook_url"], "/docs/troubleshooting.md#")
		require.True(t, found, a.Alert)
		if anchor != "{{ $cause }}" {
			require.Contains(t, sections, anchor, a.Alert)
		}
	}
	for _, cause := range append(model.DropCauses(), model.CauseDownstream, model.CauseConnectionPool) {
		require.Contains(t, sections, string(cause))
	}
}

// sections are the anchors of the runbook.
func sections(t *testing.T) (out []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "troubleshooting.md"))
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-"))
		}
	}
	return out
}

// What is lost is asked of counters: a status of ten seconds falls between two scrapes.
// The table of all listeners shows what holds now, beside what was lost, and an autoscaler
// is told nothing for two minutes after a cause that more pods make worse.
func TestNoRuleDependsOnAStatus(t *testing.T) {
	recording, alerting := rules(t)
	for _, r := range append(recording, alerting...) {
		if r.Record == "listener:tcpdiag_status:max" || strings.Contains(r.Record, ":scalable") {
			continue
		}
		for _, s := range selectors(r.Expr) {
			require.NotEqual(t, "tcpdiag_listener_status", s.name, r.Record+r.Alert)
			require.NotEqual(t, "tcpdiag_listener_verdict_info", s.name, r.Record+r.Alert)
		}
	}
}
