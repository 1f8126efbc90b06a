package assistant

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/prometheus/common/config"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/httpconfig"
)

const (
	// agentTimeout is for a whole exchange, the body included.
	agentTimeout = 15 * time.Second
	// maxBody and the others bound what an agent sends, before it is decoded: five
	// bytes of it can become a listener of 400, or a second of an incident of 100. An
	// incident has twelve values a second.
	maxBody           = 8 << 20
	maxValues         = 100_000
	maxIncidentValues = 400_000
)

// Agent asks an agent's API, and nothing else: it follows no redirect and uses no proxy.
type Agent struct {
	base    *url.URL
	client  *http.Client
	timeout time.Duration
}

// NewAgent asks the agent at a URL of AgentURL. The file, where one is given, has the HTTP client's
// settings in Prometheus's format: basic_auth, authorization, tls_config.
func NewAgent(base *url.URL, file string) (*Agent, error) {
	settings := config.HTTPClientConfig{EnableHTTP2: true}
	if file != "" {
		var err error
		if settings, err = clientSettings(file); err != nil {
			return nil, err
		}
	}
	settings.FollowRedirects = false
	client, err := config.NewClientFromConfig(settings, "tcpdiag", config.WithUserAgent("tcpdiag"))
	if err != nil {
		return nil, fmt.Errorf("--http.config.file %s: %w", file, err)
	}
	return &Agent{base, client, agentTimeout}, nil
}

// AgentURL is the base URL of an agent: the value of --agent.
func AgentURL(address string) (*url.URL, error) {
	return httpconfig.BaseURL("--agent", address, "http://127.0.0.1:10889")
}

// clientSettings reads a file. What would reach another address is refused.
func clientSettings(file string) (config.HTTPClientConfig, error) {
	settings, err := httpconfig.Load(file)
	if err != nil {
		return settings, err
	}
	if settings.OAuth2 != nil || settings.ProxyURL.URL != nil || settings.ProxyFromEnvironment || len(settings.ProxyConnectHeader) > 0 {
		return settings, fmt.Errorf("--http.config.file %s: oauth2 and proxies are not used: no address but --agent is reached", file)
	}
	return settings, nil
}

// TakesInterval is false: an agent answers from its memory.
func (a *Agent) TakesInterval() bool { return false }

// Snapshot has the listeners of the port.
func (a *Agent) Snapshot(ctx context.Context, query Query) (*api.Snapshot, error) {
	out := new(api.Snapshot)
	if err := a.get(ctx, out, maxValues, "snapshot"); err != nil {
		return nil, err
	}
	if out.Schema != api.SnapshotSchema {
		return nil, a.errorf("sends no snapshot that this program reads (%s)", api.SnapshotSchema)
	}
	return OfPort(out, query.Port), nil
}

// Incidents are those that it keeps.
func (a *Agent) Incidents(ctx context.Context) (*api.Incidents, error) {
	out := new(api.Incidents)
	if err := a.get(ctx, out, maxValues, "incidents"); err != nil {
		return nil, err
	}
	if out.Schema != api.IncidentsSchema {
		return nil, a.errorf("sends no list of incidents that this program reads (%s)", api.IncidentsSchema)
	}
	return out, nil
}

// Incident is one of them.
func (a *Agent) Incident(ctx context.Context, id string) (*api.Incident, error) {
	out := new(api.Incident)
	if err := a.get(ctx, out, maxIncidentValues, "incidents", id); err != nil {
		return nil, err
	}
	if out.Schema != api.IncidentSchema {
		return nil, a.errorf("sends no incident that this program reads (%s)", api.IncidentSchema)
	}
	return out, nil
}

// get reads a document of the API, of that many values.
func (a *Agent) get(ctx context.Context, document any, most int, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base.JoinPath(append([]string{"api", "v1"}, path...)...).String(), http.NoBody)
	if err != nil {
		return a.errorf("cannot be asked")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return a.errorf("%s", a.why(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if err := a.checkStatus(resp.StatusCode, len(path) > 1); err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return a.errorf("%s", a.why(err))
	case len(body) > maxBody:
		return a.errorf("sends more than %d MiB", maxBody>>20)
	case bytes.Count(body, []byte(","))+bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > most:
		return a.errorf("sends more than %d values", most)
	case json.Unmarshal(body, document) != nil:
		return a.errorf("sends no JSON document of tcpdiag")
	}
	return nil
}

func (a *Agent) checkStatus(code int, one bool) error {
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound && one:
		return ErrUnknown
	case code == http.StatusNotFound:
		return a.errorf("has no such page (404): give the address of tcpdiag agent")
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return a.errorf("wants other credentials (%d): give them in --http.config.file", code)
	case code == http.StatusServiceUnavailable:
		return a.errorf("is not ready (503): its first scan is not done")
	case code >= 300 && code < 400:
		return a.errorf("answers with a redirect (%d), which is not followed: give its own address", code)
	}
	return a.errorf("answers with status %d", code)
}

// errorf is about the agent, which is named as it was given.
func (a *Agent) errorf(format string, args ...any) error {
	return fmt.Errorf("the agent at %s %s", a.base, fmt.Sprintf(format, args...))
}

// why an exchange failed, without a word of what the other side sent: a certificate's
// names are a stranger's, too.
func (a *Agent) why(err error) string {
	var errno syscall.Errno
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return "was not waited for"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("did not send its whole answer in %v", a.timeout)
	case errors.As(err, &certificate):
		return "has a certificate that is not trusted: give its authority as tls_config.ca_file in --http.config.file"
	case errors.As(err, &errno):
		return "cannot be reached: " + errno.Error()
	}
	return "does not answer as an agent does (name, protocol or TLS)"
}
