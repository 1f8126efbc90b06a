package observability

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// GrafanaOptions start a Grafana that shows the dashboards to anybody.
type GrafanaOptions struct {
	Dir        string // of its data and log
	Address    string // host:port to serve on
	Dashboards string // folder with the dashboards
	Prometheus string // URL
}

// Grafana is a running Grafana.
type Grafana struct {
	GrafanaOptions
	program *program
}

// GrafanaNames are the programs that Grafana's packages install.
func GrafanaNames() []string { return []string{"grafana-server"} }

// StartGrafana starts it and waits until it is ready.
func StartGrafana(ctx context.Context, o GrafanaOptions) (*Grafana, error) {
	provisioning := filepath.Join(o.Dir, "grafana-provisioning")
	if err := o.provision(provisioning); err != nil {
		return nil, fmt.Errorf("observability: grafana: %w", err)
	}
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("observability: grafana: %w", err)
	}
	home, err := grafanaHome()
	if err != nil {
		return nil, fmt.Errorf("observability: grafana: %w", err)
	}
	g := &Grafana{GrafanaOptions: o}
	g.program, err = start(ctx, o.Dir, g.URL()+"/api/health", GrafanaNames(), []string{"--homepath", home},
		"GF_SERVER_HTTP_ADDR="+host,
		"GF_SERVER_HTTP_PORT="+port,
		"GF_PATHS_DATA="+filepath.Join(o.Dir, "grafana"),
		"GF_PATHS_LOGS="+filepath.Join(o.Dir, "grafana"),
		"GF_PATHS_PROVISIONING="+provisioning,
		"GF_AUTH_ANONYMOUS_ENABLED=true",
		"GF_AUTH_ANONYMOUS_ORG_ROLE=Admin",
		"GF_ANALYTICS_REPORTING_ENABLED=false",
		"GF_ANALYTICS_CHECK_FOR_UPDATES=false",
		"GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false",
		"GF_NEWS_NEWS_FEED_ENABLED=false",
	)
	if err != nil {
		return nil, fmt.Errorf("observability: %w", err)
	}
	return g, nil
}

// URL is where people find it.
func (o *GrafanaOptions) URL() string { return "http://" + o.Address }

// Stop ends it.
func (g *Grafana) Stop() { g.program.stop() }

// grafanaHome is where the packages put what Grafana serves, or the folder
// that the program was unpacked in.
func grafanaHome() (string, error) {
	path, err := installed(GrafanaNames()...)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	for _, home := range []string{filepath.Dir(filepath.Dir(path)), "/usr/share/grafana"} {
		if _, err := os.Stat(filepath.Join(home, "conf", "defaults.ini")); err == nil {
			return home, nil
		}
	}
	return "", fmt.Errorf("%s: no conf/defaults.ini beside it or in /usr/share/grafana", path)
}

// provision writes a data source and a folder of dashboards.
func (o *GrafanaOptions) provision(dir string) error {
	for name, config := range map[string]any{
		"datasources": map[string]any{"apiVersion": 1, "datasources": []map[string]any{{
			"name": "Prometheus", "uid": "prometheus", "type": "prometheus", "access": "proxy",
			"url": o.Prometheus, "isDefault": true,
		}}},
		"dashboards": map[string]any{"apiVersion": 1, "providers": []map[string]any{{
			"name": "tcpdiag", "type": "file", "options": map[string]any{"path": o.Dashboards},
		}}},
	} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			return err
		}
		if err := writeYAML(filepath.Join(dir, name, "tcpdiag.yml"), config); err != nil {
			return err
		}
	}
	return nil
}
