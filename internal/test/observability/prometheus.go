package observability

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// Job is a scrape job with one target, or many.
type Job struct {
	Name           string
	Target         string // host:port
	Targets        []Target
	ScrapeInterval time.Duration
}

// Target is one of many, with labels of its own.
type Target struct {
	Addresses []string          `yaml:"targets"` // host:port
	Labels    map[string]string `yaml:"labels"`
}

// PrometheusOptions start a Prometheus.
type PrometheusOptions struct {
	Dir                string // of its configuration, data and log
	Address            string // host:port to serve on
	Rules              string // folder with the delivered rules
	EvaluationInterval time.Duration
	Jobs               []Job
	Alertmanager       string            // host:port; "" for none
	Flags              []string          // more of them
	External           map[string]string // labels, of what others read of it
}

// Prometheus is a running Prometheus.
type Prometheus struct {
	PrometheusOptions
	program *program
}

// StartPrometheus starts it and waits until it is ready.
func StartPrometheus(ctx context.Context, o PrometheusOptions) (*Prometheus, error) {
	config := filepath.Join(o.Dir, "prometheus.yml")
	if err := o.configure(config); err != nil {
		return nil, fmt.Errorf("observability: %w", err)
	}
	p := &Prometheus{PrometheusOptions: o}
	args := append([]string{
		"--config.file=" + config,
		"--storage.tsdb.path=" + filepath.Join(o.Dir, "prometheus"),
		"--web.listen-address=" + o.Address,
		"--log.level=warn",
	}, o.Flags...)
	var err error
	p.program, err = start(ctx, o.Dir, p.URL()+"/-/ready", []string{"prometheus"}, args)
	if err != nil {
		return nil, fmt.Errorf("observability: %w", err)
	}
	return p, nil
}

// URL is where people find it.
func (o *PrometheusOptions) URL() string { return "http://" + o.Address }

// PID is its process.
func (p *Prometheus) PID() int { return p.program.cmd.Process.Pid }

// Stop ends it.
func (p *Prometheus) Stop() { p.program.stop() }

// configure writes the configuration: everything but the rules is its own.
func (o *PrometheusOptions) configure(path string) error {
	jobs := make([]map[string]any, 0, len(o.Jobs))
	for _, j := range o.Jobs {
		jobs = append(jobs, map[string]any{
			"job_name":        j.Name,
			"scrape_interval": j.ScrapeInterval.String(),
			"scrape_timeout":  min(j.ScrapeInterval, 10*time.Second).String(),
			"static_configs":  j.static(),
		})
	}
	config := map[string]any{
		"global":         map[string]any{"evaluation_interval": o.EvaluationInterval.String(), "external_labels": o.External},
		"rule_files":     []string{filepath.Join(o.Rules, "*.rules.yml")},
		"scrape_configs": jobs,
	}
	if o.Alertmanager != "" {
		config["alerting"] = map[string]any{"alertmanagers": []map[string]any{{"static_configs": targets(o.Alertmanager)}}}
	}
	return writeYAML(path, config)
}

func (j *Job) static() any {
	if len(j.Targets) > 0 {
		return j.Targets
	}
	return targets(j.Target)
}

func targets(address string) []map[string]any {
	return []map[string]any{{"targets": []string{address}}}
}

func writeYAML(path string, v any) error {
	out, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o600)
}

// Series is one series of an answer.
type Series struct {
	Labels map[string]string
	Values []float64 // one for an instant
	Times  []time.Time
}

// Query evaluates an expression now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	return p.ask(ctx, "query", url.Values{"query": {expr}})
}

// QueryRange evaluates it from start to end.
func (p *Prometheus) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	return p.ask(ctx, "query_range", url.Values{
		"query": {expr}, "step": {step.String()},
		"start": {from.Format(time.RFC3339Nano)}, "end": {to.Format(time.RFC3339Nano)},
	})
}

// ActiveAlert is one that is pending or firing, with its texts as they are now.
type ActiveAlert struct{ Labels, Annotations map[string]string }

// Alerts are those of this moment.
func (p *Prometheus) Alerts(ctx context.Context) ([]ActiveAlert, error) {
	body, err := get(ctx, p.URL()+"/api/v1/alerts")
	if err != nil {
		return nil, fmt.Errorf("observability: alerts: %w", err)
	}
	var answer struct {
		Data struct{ Alerts []ActiveAlert }
	}
	err = json.Unmarshal(body, &answer)
	return answer.Data.Alerts, err
}

func (p *Prometheus) ask(ctx context.Context, what string, v url.Values) ([]Series, error) {
	body, err := get(ctx, p.URL()+"/api/v1/"+what+"?"+v.Encode())
	if err != nil {
		return nil, fmt.Errorf("observability: %s %q: %w", what, v.Get("query"), err)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  point
				Values []point
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("observability: %s %q: %w", what, v.Get("query"), err)
	}
	var out []Series
	for _, r := range answer.Data.Result {
		s := Series{Labels: r.Metric}
		if r.Values == nil {
			r.Values = []point{r.Value}
		}
		for _, point := range r.Values {
			s.Values = append(s.Values, point.value)
			s.Times = append(s.Times, point.at)
		}
		out = append(out, s)
	}
	return out, nil
}

// point is [seconds, "value"] of the API's answers.
type point struct {
	at    time.Time
	value float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *point) UnmarshalJSON(b []byte) error {
	var seconds float64
	var value string
	if err := json.Unmarshal(b, &[]any{&seconds, &value}); err != nil {
		return err
	}
	var err error
	p.at = time.UnixMilli(int64(seconds * 1000))
	p.value, err = strconv.ParseFloat(value, 64)
	return err
}
