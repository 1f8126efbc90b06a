// Package fleet asks a Prometheus (or Mimir, or Thanos, which have the same API) for the
// listeners of all agents: `tcpdiag fleet`. It is read from Client.Table (table.go), which
// asks the questions of questions.go.
//
// It is a client that a person runs. No other package but the command line may import it:
// the agent makes no outbound connection.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/tcpdiag/tcpdiag/internal/httpconfig"
	tcpdiag "github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// maxBody bounds an answer before it is decoded: a series is about 400 bytes.
	maxBody = 64 << 20
	// maxText and maxWarnings bound what a server says in words.
	maxText     = 200
	maxWarnings = 5
)

// Client asks one server.
type Client struct {
	api      prometheus.API
	base     *url.URL
	at       time.Time
	mu       sync.Mutex
	warnings []string
}

// ParseURL is the base URL of a server: the value of --prometheus.
func ParseURL(address string) (*url.URL, error) {
	return httpconfig.BaseURL("--prometheus", address, "http://prometheus:9090 (Mimir: https://mimir/prometheus)")
}

// New asks the server at a URL of ParseURL for what it has of that time. The file, where
// one is given, has the HTTP client's settings in Prometheus's format.
func New(base *url.URL, file string, at time.Time) (*Client, error) {
	settings := config.DefaultHTTPClientConfig
	if file != "" {
		var err error
		if settings, err = httpconfig.Load(file); err != nil {
			return nil, err
		}
	}
	settings.FollowRedirects = false // credentials would go along
	transport, err := config.NewRoundTripperFromConfig(settings, "tcpdiag", config.WithUserAgent("tcpdiag"))
	if err != nil {
		return nil, fmt.Errorf("--http.config.file %s: %w", file, err)
	}
	client, err := api.NewClient(api.Config{Address: base.String(), Client: &http.Client{
		Transport:     bounded{transport, maxBody},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("--prometheus: %w", err)
	}
	return &Client{api: prometheus.NewAPI(client), base: base, at: at}, nil
}

// query is the answer to one question.
func (c *Client) query(ctx context.Context, expr string) (model.Vector, error) {
	value, warnings, _, err := c.api.Query(ctx, expr, c.at)
	if err != nil {
		return nil, c.explain(err)
	}
	c.warn(warnings)
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s: it answers with a %s: is this the API of a Prometheus?", c.base.Redacted(), plain(value.Type().String()))
	}
	return vector, nil
}

// warn keeps each warning once.
func (c *Client) warn(warnings []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range warnings {
		w = plain(w)
		known := false
		for _, have := range c.warnings {
			known = known || have == w
		}
		if !known && len(c.warnings) < maxWarnings {
			c.warnings = append(c.warnings, w)
		}
	}
}

// explain says what to do about an error, and shows little of what came from afar.
func (c *Client) explain(err error) error {
	var status *prometheus.Error
	var transport *url.Error
	where := c.base.Redacted()
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%s: an answer of more than %d MiB: select less by --namespace or --cluster", where, maxBody>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer within --timeout", where)
	case errors.As(err, &status) && status.Type == prometheus.ErrBadResponse && !strings.HasPrefix(status.Msg, "bad response code"):
		return fmt.Errorf("%s: the answer cannot be read as one of Prometheus's API", where) // the message quotes it
	case errors.As(err, &status):
		hint := ""
		switch msg := status.Msg; {
		case strings.HasSuffix(msg, "401"), strings.HasSuffix(msg, "403"):
			hint = ": credentials, and the tenant's X-Scope-OrgID, stand in --http.config.file"
		case strings.HasSuffix(msg, "404"):
			hint = ": there is no /api/v1/query below this URL (Mimir's is below /prometheus)"
		case strings.Contains(msg, "code 3"):
			hint = ": it redirects; give the URL that it leads to"
		}
		return fmt.Errorf("%s: %s%s", where, plain(status.Msg), hint)
	case errors.As(err, &transport):
		return fmt.Errorf("%s: %w", where, transport.Err)
	}
	return fmt.Errorf("%s: the answer cannot be read as one of Prometheus's API", where)
}

// plain is a server's text, printable and bounded.
func plain(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return tcpdiag.Printable(text)
}

var errTooLarge = errors.New("the answer is too large")

// bounded ends answers that are too long.
type bounded struct {
	next http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &body{resp.Body, b.most}
	}
	return resp, err
}

type body struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
