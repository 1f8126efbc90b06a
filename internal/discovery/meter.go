package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// maxMeterBody bounds an answer; one has a few hundred bytes.
const maxMeterBody = 64 << 10

// What an Actuator does wrong. What it says is not repeated.
var (
	errNoAnswer = errors.New("no answer")
	errBody     = errors.New("actuator: the answer is no metric in JSON")
	errURL      = errors.New("actuator: not a URL that can be asked")
)

// actuatorClient asks through a door and follows no redirect: it would lead to a
// login page or to another port.
func actuatorClient(d *door) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:       nil,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx) },
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
		return meter{}, fmt.Errorf("actuator: %w", withoutURL(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return meter{}, fmt.Errorf("actuator: metric %s: HTTP status %d: %w", name, response.StatusCode, errNoAnswer)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMeterBody))
	if err != nil {
		return meter{}, fmt.Errorf("actuator: metric %s: %w", name, err)
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

// withoutURL takes away the URL that the client puts in front of its errors:
// there may be a user, a password or a token in it.
func withoutURL(err error) error {
	if at := (*url.Error)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// shownURL is a URL for people: where it leads, and nothing else of it.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a URL that cannot be parsed"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
