package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	collogpb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

// collector sends log records by OTLP over HTTP, one a request: so they arrive in order, and
// each answer is about one.
type collector struct {
	exporter *otlploghttp.Exporter
	answers  *answers
}

// collectorURL is where logs are received: /v1/logs unless another path is given.
func collectorURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || !isPort(u.Port()) {
		return "", usagef("--otlp-endpoint: give a URL such as http://127.0.0.1:4318; headers are in OTEL_EXPORTER_OTLP_HEADERS")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/logs"
	}
	return u.String(), nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

func newCollector(ctx context.Context, endpoint string) (*collector, error) {
	config, err := tlsConfig()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	a := &answers{next: transport}
	e, err := otlploghttp.New(ctx,
		otlploghttp.WithEndpointURL(endpoint),
		otlploghttp.WithHTTPClient(&http.Client{Transport: a, Timeout: sendWithin, CheckRedirect: noRedirect}),
		otlploghttp.WithTimeout(sendWithin),
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}), // the spool repeats
		otlploghttp.WithCompression(otlploghttp.GzipCompression),
	)
	if err != nil {
		return nil, err
	}
	return &collector{e, a}, nil
}

// noRedirect: a redirected POST becomes a GET, which a page to log in at answers with 200.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tlsConfig is by the variables of the OTLP specification, which the exporter leaves to a
// client that is given to it.
func tlsConfig() (*tls.Config, error) {
	of := func(name string) string {
		return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_LOGS_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := of("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE: the file holds no certificate")
		}
	}
	if cert, key := of("CLIENT_CERTIFICATE"), of("CLIENT_KEY"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// answers notes how the collector answered the latest request, which the exporter puts
// into words: a refusal for good differs from one for now (OTLP: 429, 502, 503, 504).
type answers struct {
	next     http.RoundTripper
	status   int
	rejected int64
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.status, a.rejected = 0, 0
	answer, err := a.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	a.status = answer.StatusCode
	if a.status/100 != 2 {
		return answer, nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	if kind := answer.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		return nil, errPage
	}
	var said collogpb.ExportLogsServiceResponse
	if answer.Header.Get("Content-Type") == "application/x-protobuf" && proto.Unmarshal(body, &said) == nil {
		a.rejected = said.GetPartialSuccess().GetRejectedLogRecords()
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// errPage: something else than a collector has taken the record.
var errPage = errors.New("a page in HTML is no answer of a collector: --otlp-endpoint names something else")

// forGood reports whether the latest answer would be the same another time. Who is not
// allowed (401, 403) or asked at a wrong path (404) may be, once somebody has mended that.
func (a *answers) forGood() bool {
	return a.status == http.StatusBadRequest || a.status == http.StatusRequestEntityTooLarge || a.status == http.StatusUnprocessableEntity || a.rejected > 0
}

// send hands over a record, and returns once the collector has it.
func (c *collector) send(ctx context.Context, e *records.Event) error {
	record, err := recordOf(ctx, e)
	if err != nil {
		return errors.Join(errForGood, err)
	}
	err = c.exporter.Export(ctx, []sdklog.Record{record})
	if c.answers.forGood() {
		return errors.Join(errForGood, err)
	}
	return err
}

// caught takes a record from the SDK, which alone can give it its resource.
type caught struct{ record sdklog.Record }

func (c *caught) OnEmit(_ context.Context, r *sdklog.Record) error { c.record = r.Clone(); return nil }

func (c *caught) Enabled(context.Context, sdklog.EnabledParameters) bool {
	return true
}
func (*caught) Shutdown(context.Context) error   { return nil }
func (*caught) ForceFlush(context.Context) error { return nil }

// recordOf is an event by the semantic conventions: whose it is in the resource, what
// happened in the attributes. Those that have no convention begin with tcpdiag.
func recordOf(ctx context.Context, e *records.Event) (sdklog.Record, error) {
	var c caught
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(&c), sdklog.WithResource(resource.NewWithAttributes(semconv.SchemaURL, resourceOf(e)...)))
	var r otellog.Record
	r.SetEventName("tcpdiag.incident." + e.Kind)
	r.SetTimestamp(e.At)
	r.SetObservedTimestamp(time.Now())
	severity := otellog.SeverityWarn
	switch {
	case e.Kind == records.EventEnd:
		severity = otellog.SeverityInfo
	case e.Severe:
		severity = otellog.SeverityError
	}
	r.SetSeverity(severity)
	r.SetSeverityText(severity.String())
	r.SetBody(attribute.StringValue(e.Body))
	r.AddAttributes(attributesOf(e)...)
	provider.Logger("github.com/tcpdiag/tcpdiag").Emit(ctx, r)
	return c.record, provider.Shutdown(ctx)
}

func resourceOf(e *records.Event) []attribute.KeyValue {
	out := []attribute.KeyValue{semconv.ServiceName("tcpdiag")}
	add := func(value string, of func(string) attribute.KeyValue) {
		if value != "" {
			out = append(out, of(value))
		}
	}
	add(e.Version, semconv.ServiceVersion)
	add(e.Origin.Host, semconv.HostName)
	add(e.Origin.Cluster, semconv.K8SClusterName)
	add(e.Origin.Namespace, semconv.K8SNamespaceName)
	add(e.Origin.Pod, semconv.K8SPodName)
	add(e.Origin.PodUID, semconv.K8SPodUID)
	add(e.Origin.Container, semconv.K8SContainerName)
	add(e.Origin.ContainerID, semconv.ContainerID)
	return out
}

func attributesOf(e *records.Event) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("log.record.uid", e.UID),
		attribute.String("tcpdiag.incident.id", e.Incident),
		attribute.String("tcpdiag.incident.event", e.Kind),
		attribute.Int("tcpdiag.incident.number", e.Number),
		attribute.String("tcpdiag.status", e.Status),
		attribute.Float64("tcpdiag.incident.duration", e.Lasted.Seconds()),
		attribute.Int64("tcpdiag.packets.dropped", int64(min(e.Dropped, 1<<62))), //nolint:gosec // bounded
		semconv.ServerAddress(e.Address),
		semconv.ServerPort(int(e.Port)),
	}
	add := func(name, value string) {
		if value != "" {
			out = append(out, attribute.String(name, value))
		}
	}
	add("tcpdiag.cause", e.Cause)
	add("tcpdiag.incident.end_reason", e.Reason)
	add("tcpdiag.recording.url", e.Object)
	if e.Turned != nil { // absent where handshakes were not followed
		out = append(out, attribute.Int64("tcpdiag.clients.turned_away", int64(min(*e.Turned, 1<<62)))) //nolint:gosec // bounded
	}
	if e.PID != 0 {
		out = append(out, semconv.ProcessPID(e.PID))
	}
	return out
}
