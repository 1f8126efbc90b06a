package observability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// AlertmanagerOptions start an Alertmanager with the delivered configuration.
type AlertmanagerOptions struct {
	Dir      string // of its configuration, data and log
	Address  string // host:port to serve on
	Config   string // the delivered alertmanager.yml
	Receiver string // base URL that the webhooks go to instead of what the file says
	// GroupWait and GroupInterval take the place of the file's when they are
	// not 0.
	GroupWait, GroupInterval time.Duration
}

// Alertmanager is a running Alertmanager.
type Alertmanager struct {
	AlertmanagerOptions
	program *program
}

// StartAlertmanager starts it and waits until it is ready.
func StartAlertmanager(ctx context.Context, o AlertmanagerOptions) (*Alertmanager, error) {
	config := filepath.Join(o.Dir, "alertmanager.yml")
	if err := o.configure(config); err != nil {
		return nil, fmt.Errorf("observability: %q: %w", o.Config, err)
	}
	a := &Alertmanager{AlertmanagerOptions: o}
	var err error
	a.program, err = start(ctx, o.Dir, a.URL()+"/-/ready", []string{"alertmanager", "prometheus-alertmanager"}, []string{
		"--config.file=" + config,
		"--storage.path=" + filepath.Join(o.Dir, "alertmanager"),
		"--web.listen-address=" + o.Address,
		"--cluster.listen-address=", // alone
		"--log.level=warn",
	})
	if err != nil {
		return nil, fmt.Errorf("observability: %w", err)
	}
	return a, nil
}

// URL is where people find it.
func (o *AlertmanagerOptions) URL() string { return "http://" + o.Address }

// Stop ends it.
func (a *Alertmanager) Stop() { a.program.stop() }

// configure copies the delivered configuration with its receivers' URLs and,
// if asked for, the waiting times changed; routes and inhibit_rules stay.
func (o *AlertmanagerOptions) configure(path string) error {
	delivered, err := os.ReadFile(o.Config)
	if err != nil {
		return err
	}
	var config struct {
		Route     map[string]any
		Receivers []struct {
			Name     string
			Webhooks []map[string]any `yaml:"webhook_configs"`
		}
		Inhibit []any `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(delivered, &config); err != nil {
		return err
	}
	o.hurry(config.Route)
	for _, r := range config.Receivers {
		if len(r.Webhooks) != 1 {
			return errors.New("receiver " + r.Name + ": want one webhook")
		}
		r.Webhooks[0]["url"] = o.Receiver + "/" + r.Name
	}
	return writeYAML(path, config)
}

// hurry shortens the waiting times of a route and those below it.
func (o *AlertmanagerOptions) hurry(route map[string]any) {
	if _, ok := route["group_wait"]; ok && o.GroupWait > 0 {
		route["group_wait"] = o.GroupWait.String()
	}
	if _, ok := route["group_interval"]; ok && o.GroupInterval > 0 {
		route["group_interval"] = o.GroupInterval.String()
	}
	below, _ := route["routes"].([]any)
	for _, r := range below {
		if r, ok := r.(map[string]any); ok {
			o.hurry(r)
		}
	}
}

// Alert is an alert that Alertmanager holds.
type Alert struct {
	Labels map[string]string
	Status struct {
		State       string // active or suppressed
		InhibitedBy []string
	}
	Fingerprint string
}

// Alerts are those that are firing, inhibited ones among them.
func (a *Alertmanager) Alerts(ctx context.Context) ([]Alert, error) {
	body, err := get(ctx, a.URL()+"/api/v2/alerts")
	if err != nil {
		return nil, fmt.Errorf("observability: alerts: %w", err)
	}
	var out []Alert
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, fmt.Errorf("observability: alerts: %w", err)
	}
	return out, nil
}
