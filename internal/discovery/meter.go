package discovery

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// maxMeterBody bounds an answer; one has a few hundred bytes.
const maxMeterBody = 64 << 10

// What an Actuator does wrong. What it says is not repeated.
var (
	errNoAnswer = errors.New("no answer")
	errBody     = errors.New("actuator: the answer is no metric in JSON")
	errURL      = errors.New("actuator: not a URL that can be asked")
	errHTTP     = errors.New("actuator: the answer is not HTTP")

	errCertificate = errors.New("actuator: its certificate is not trusted")
)

// actuatorClient asks through a door and follows no redirect: it would lead to a
// login page or to another port.
func actuatorClient(d *door) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn, err := d.dial(ctx)
				if err != nil {
					return nil, &unreachedError{err}
				}
				return conn, nil
			},
		},
	}
}

// askAll reads the figures of every connector that has some. The application's
// own has; the management port's Tomcat has none.
func askAll(ctx context.Context, client *http.Client, base string) ([]reading, error) {
	busy, err := askMeter(ctx, client, base, "tomcat.threads.busy", "")
	if err != nil {
		return nil, err
	}
	names := busy.names()
	readings := make([]reading, 0, len(names))
	for _, name := range names {
		r := reading{name: name}
		for meter, field := range map[string]**int{
			"tomcat.threads.busy":           &r.busy,
			"tomcat.threads.config.max":     &r.maxThreads,
			"tomcat.connections.current":    &r.connections,
			"tomcat.connections.config.max": &r.maxConnected,
		} {
			m, err := askMeter(ctx, client, base, meter, name)
			if err != nil {
				return nil, err
			}
			*field = m.value()
		}
		readings = append(readings, r)
	}
	return readings, nil
}

// meter is Actuator's answer to /metrics/NAME.
type meter struct {
	Measurements []struct {
		Statistic string  `json:"statistic"`
		Value     float64 `json:"value"`
	} `json:"measurements"`
	AvailableTags []struct {
		Tag    string   `json:"tag"`
		Values []string `json:"values"`
	} `json:"availableTags"`
}

// maxConnectors bounds what an answer can make us ask.
const maxConnectors = 16

// names are the connectors' names.
func (m meter) names() []string {
	for _, tag := range m.AvailableTags {
		if tag.Tag == "name" {
			return tag.Values[:min(len(tag.Values), maxConnectors)]
		}
	}
	return nil
}

// value is nil for NaN and for what is no count: a connector with virtual
// threads has no busy threads (-1).
func (m meter) value() *int {
	for _, measurement := range m.Measurements {
		if measurement.Statistic == "VALUE" && measurement.Value >= 0 && measurement.Value < 1<<31 {
			return new(int(measurement.Value))
		}
	}
	return nil
}

func askMeter(ctx context.Context, client *http.Client, base, name, connector string) (meter, error) {
	address := base + "/metrics/" + name
	if connector != "" {
		address += "?tag=" + url.QueryEscape("name:"+connector)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return meter{}, errURL
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "tcpdiag")
	response, err := client.Do(request)
	if err != nil {
		return meter{}, unquoted(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return meter{}, fmt.Errorf("actuator: metric %s: HTTP status %d: %w", name, response.StatusCode, errNoAnswer)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMeterBody))
	if err != nil {
		return meter{}, unquoted(err)
	}
	return parseMeter(body)
}

func parseMeter(body []byte) (meter, error) {
	var m meter
	if err := json.Unmarshal(body, &m); err != nil {
		return meter{}, errBody
	}
	return m, nil
}

// unquoted is an error of a request without the URL in front of it, which may
// have a user, a password or a token, and without what the answer said: net/http
// quotes answers that it does not understand.
func unquoted(err error) error {
	var timeout net.Error
	var apart *unreachedError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &apart):
		return apart.err
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("actuator: %w in time", errNoAnswer)
	case errors.As(err, &certificate):
		return errCertificate
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("actuator: %w: it closes the connection", errNoAnswer)
	}
	return errHTTP
}

// unreachedError is why there is no connection: in words of our own and of the
// kernel's.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string { return e.err.Error() }

// shownURL is a URL for people: where it leads, and nothing else of it.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a URL that cannot be parsed"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
