package tomcat

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

const (
	actuatorTimeout = time.Second // of one round of questions
	actuatorEvery   = 5 * time.Second
	actuatorRetry   = time.Minute // after a failure
)

// actuator asks Spring Boot's Actuator for Tomcat's own figures (Micrometer's
// TomcatMetrics), which are there with server.tomcat.mbeanregistry.enabled.
type actuator struct {
	url string // "" unless it was given
}

func newActuator() *actuator { return &actuator{} }

// reading is what Actuator says of one connector.
type reading struct {
	name                      string // the connector's, "http-nio-8080"
	busy, maxThreads          *int
	connections, maxConnected *int
}

// meters are the last readings of a process.
type meters struct {
	mu       sync.Mutex
	next     time.Time // not asked again before
	asking   bool
	readings []reading
	err      error
}

// ask adds Actuator's figures. The first time it waits for the answer; later
// ones are fetched beside, so that a busy application does not hold up a scan.
func (d *Discoverer) ask(ctx context.Context, pid int, e *entry, connectors map[uint16]*backlog.Connector) []backlog.Unavailable {
	base := d.actuatorURL(e, connectors)
	if base == "" {
		return nil
	}
	m := &e.meters
	m.refresh(ctx, d.now, actuatorClient(path.Join(path.Dir(d.proc.Root(pid)), "ns", "net")), base)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.readings {
		r.apply(connectors)
	}
	if m.err == nil {
		return nil
	}
	return []backlog.Unavailable{{
		What: fmt.Sprintf("Actuator of pid %d", pid), Why: m.err.Error(),
		How: "expose metrics there without credentials, and set server.tomcat.mbeanregistry.enabled=true",
	}}
}

// actuatorURL is the URL that was given, if the process listens on its port, or
// one found on a management port of its own. The application's own port is
// never asked unless it was given.
func (d *Discoverer) actuatorURL(e *entry, connectors map[uint16]*backlog.Connector) string {
	for _, base := range []string{d.actuator.url, e.found.management} {
		if u, err := url.Parse(base); err == nil && base != "" {
			if _, listens := connectors[portOf(cmp.Or(u.Port(), standardPort(u.Scheme)))]; listens {
				return strings.TrimSuffix(base, "/")
			}
		}
	}
	return ""
}

func standardPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// refresh asks when it is time.
func (m *meters) refresh(ctx context.Context, now func() time.Time, client *http.Client, base string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asking || now().Before(m.next) {
		return
	}
	m.asking = true
	first := m.next.IsZero()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, actuatorTimeout)
		defer cancel()
		readings, err := askAll(ctx, client, base)
		client.CloseIdleConnections()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.readings, m.err, m.asking = readings, err, false
		m.next = now().Add(actuatorEvery)
		if err != nil {
			m.next = now().Add(actuatorRetry)
		}
	}()
	if first {
		m.mu.Unlock()
		<-done
		m.mu.Lock()
	}
}

// apply puts the figures on the connector they are about. A maximum that
// differs from the configured one is in force: it was changed since the start,
// or by code.
func (r reading) apply(connectors map[uint16]*backlog.Connector) {
	c := r.connector(connectors)
	if c == nil || c.Server != serverTomcat {
		return
	}
	c.BusyThreads, c.CurrentConnections = r.busy, r.connections
	if c.VirtualThreads == nil || !c.VirtualThreads.Value {
		c.MaxThreads = inForce(c.MaxThreads, r.maxThreads)
	}
	c.MaxConnections = inForce(c.MaxConnections, r.maxConnected)
}

// connector goes by the port at the end of the name. One chosen by the system
// is not in the name ("http-nio-auto-1"): then it is the only Tomcat's, if
// there is only one.
func (r reading) connector(connectors map[uint16]*backlog.Connector) *backlog.Connector {
	digits := r.name[strings.LastIndexByte(r.name, '-')+1:]
	if !strings.Contains(r.name, "-auto-") {
		return connectors[portOf(digits)]
	}
	var only *backlog.Connector
	for _, c := range connectors {
		if c.Server == serverTomcat {
			if only != nil {
				return nil
			}
			only = c
		}
	}
	return only
}

func inForce(configured *backlog.Setting[int], now *int) *backlog.Setting[int] {
	if now == nil || configured != nil && configured.Value == *now {
		return configured
	}
	s := &backlog.Setting[int]{Value: *now, Kind: backlog.SourceActuator, Source: "Actuator"}
	if configured != nil {
		s.Note = "configured is " + strconv.Itoa(configured.Value) + " (" + configured.Source + ")"
	}
	return s
}
