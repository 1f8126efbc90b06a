package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// The dashboards in the form of grafana.com: whoever imports one is asked for the data source.
const (
	dashboards   = "../../dashboards"
	grafanaCom   = dashboards + "/grafana.com"
	sourceInput  = "DS_PROMETHEUS"
	sourceChoice = "datasource" // the variable that every panel goes by
)

// panelName is Grafana's own of a panel's type, "" of one that no dashboard has yet.
func panelName(id string) string {
	return map[string]string{
		"gauge": "Gauge", "stat": "Stat", "state-timeline": "State timeline", "table": "Table", "timeseries": "Time series",
	}[id]
}

type object = map[string]any

// toImport is a dashboard with what an import asks for and needs.
func toImport(text []byte) ([]byte, error) {
	var d object
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	requires := []object{
		{"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"},
		{"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
	}
	types := make(map[string]bool)
	panels, _ := d["panels"].([]any)
	panelTypes(panels, types)
	for _, id := range slices.Sorted(maps.Keys(types)) {
		name := panelName(id)
		if name == "" {
			return nil, fmt.Errorf("a panel of type %q: its name?", id)
		}
		requires = append(requires, object{"type": "panel", "id": id, "name": name, "version": ""})
	}
	d["__inputs"] = []object{{
		"name": sourceInput, "label": "Prometheus", "description": "where the agents are scraped to", "type": "datasource", "pluginId": "prometheus", "pluginName": "Prometheus",
	}}
	d["__elements"], d["__requires"], d["id"] = object{}, requires, nil
	choice := variable(d, sourceChoice)
	if choice == nil {
		return nil, fmt.Errorf("no variable %q", sourceChoice)
	}
	choice["current"] = object{"selected": true, "text": "${" + sourceInput + "}", "value": "${" + sourceInput + "}"}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return out.Bytes(), err
}

func panelTypes(panels []any, types map[string]bool) {
	for _, p := range panels {
		panel, _ := p.(object)
		if name, _ := panel["type"].(string); name != "row" {
			types[name] = true
		}
		below, _ := panel["panels"].([]any)
		panelTypes(below, types)
	}
}

func variable(d object, name string) object {
	templating, _ := d["templating"].(object)
	list, _ := templating["list"].([]any)
	for _, v := range list {
		if of, _ := v.(object); of["name"] == name {
			return of
		}
	}
	return nil
}

// ofDashboards are the files for grafana.com, by their paths.
func ofDashboards() (map[string]string, error) {
	sources, err := filepath.Glob(filepath.Join(dashboards, "*.json"))
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(sources))
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		form, err := toImport(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out[filepath.Join(grafanaCom, filepath.Base(path))] = string(form)
	}
	return out, nil
}

func writeOfDashboards() error {
	files, err := ofDashboards()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(grafanaCom, 0o755); err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
