package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files for grafana.com are the dashboards', and once a data source is chosen, as an import does
// it, nothing in them asks for another.
func TestGrafanaCom(t *testing.T) {
	files, err := ofDashboards()
	require.NoError(t, err)
	require.Len(t, files, 2)
	for path, want := range files {
		t.Run(path, func(t *testing.T) {
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, want == string(got), "%s is stale: run make manifests", path)
			var form struct {
				Inputs   []struct{ Name, Type, PluginID string } `json:"__inputs"`
				Requires []struct{ Type, ID, Name string }       `json:"__requires"`
				ID       *int
				UID      string
			}
			require.NoError(t, json.Unmarshal(got, &form))
			require.Nil(t, form.ID)
			require.NotEmpty(t, form.UID)
			require.Len(t, form.Inputs, 1)
			require.Equal(t, "prometheus", form.Inputs[0].PluginID)
			needs := make(map[string]bool)
			for _, r := range form.Requires {
				require.NotEmpty(t, r.Name)
				needs[r.Type+" "+r.ID] = true
			}
			require.True(t, needs["grafana grafana"] && needs["datasource prometheus"])

			imported := strings.ReplaceAll(string(got), "${"+form.Inputs[0].Name+"}", "chosen")
			require.NotContains(t, imported, "${DS_")
			var d map[string]any
			require.NoError(t, json.Unmarshal([]byte(imported), &d))
			require.Equal(t, "chosen", variable(d, sourceChoice)["current"].(map[string]any)["value"])
			for _, m := range regexp.MustCompile(`"uid": "([^"]*)"`).FindAllStringSubmatch(imported, -1) {
				require.Contains(t, []string{"${" + sourceChoice + "}", "-- Grafana --", form.UID}, m[1])
			}
			types := make(map[string]bool)
			panelTypes(d["panels"].([]any), types)
			require.NotEmpty(t, types)
			for name := range types {
				require.True(t, needs["panel "+name], name)
			}
		})
	}
	_, err = toImport([]byte(`{"panels": [{"type": "row", "panels": [{"type": "geomap"}]}]}`))
	require.ErrorContains(t, err, "geomap")
	_, err = toImport([]byte(`{"panels": []}`))
	require.ErrorContains(t, err, "datasource")
}
