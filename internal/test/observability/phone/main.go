// Command phone lays out alerts as a phone shows them: what is seen of each on a locked screen,
// and the whole of it behind. It reads the texts that the rules' tests expect, which Prometheus's
// engine has made of the rules, or those that a receiver got (JSON).
//
//	go run ./internal/test/observability/phone deploy/prometheus/tests/losing.test.yml > losing.html
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/test/observability"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "phone:", err)
		os.Exit(1)
	}
}

func run(files []string, w io.Writer) error {
	if len(files) == 0 {
		return errors.New("give files of tests, or of notifications")
	}
	var all []observability.Notification
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		read := expected
		if filepath.Ext(name) == ".json" {
			read = received
		}
		alerts, err := read(b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, alerts...)
	}
	return draw(w, each(all))
}

//go:embed phone.html
var page string

func draw(w io.Writer, alerts []observability.Notification) error {
	t, err := template.New("phone").Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, alerts)
}

// each leaves out those that say what another has said.
func each(alerts []observability.Notification) (out []observability.Notification) {
	seen := make(map[string]bool)
	for _, a := range alerts {
		said := a.Labels["alertname"] + a.Annotations["summary"] + a.Annotations["description"]
		if !seen[said] {
			seen[said] = true
			out = append(out, a)
		}
	}
	return out
}

func received(b []byte) (out []observability.Notification, err error) {
	err = json.Unmarshal(b, &out)
	return out, err
}

// expected are the alerts of a file for promtool test rules.
func expected(b []byte) (out []observability.Notification, err error) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Alert    string `yaml:"alertname"`
				Expected []struct {
					Labels      map[string]string `yaml:"exp_labels"`
					Annotations map[string]string `yaml:"exp_annotations"`
				} `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	for _, t := range file.Tests {
		for _, a := range t.Alerts {
			for _, e := range a.Expected {
				e.Labels["alertname"] = a.Alert
				out = append(out, observability.Notification{Status: "firing", Labels: e.Labels, Annotations: e.Annotations})
			}
		}
	}
	return out, nil
}
