package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	actuatorTimeout = time.Second // of one round of questions
	actuatorEvery   = 5 * time.Second
	actuatorRetry   = time.Minute // after a failure
	maxAsks         = 8           // at once
	// firstAnswers is how long is waited for the first answers of all Actuators.
	firstAnswers = 2 * actuatorTimeout

	exposeMetrics = "expose metrics there without credentials, and set server.tomcat.mbeanregistry.enabled=true"
)

// Actuator is Spring Boot's, which is asked for Tomcat's own figures
// (Micrometer's TomcatMetrics; they are there with
// server.tomcat.mbeanregistry.enabled), and for whom.
type Actuator struct {
	URL  string // base, "http://127.0.0.1:8081/actuator"
	Port uint16 // of the process that listens there; 0: on the URL's own port
	PID  int    // only of this process; 0: of any

	discovered bool // in the process's own configuration
}

// answersFor reports whether a process is the one: it listens on the port, or the
// URL is from its own configuration.
func (a Actuator) answersFor(pid int, connectors match.Connectors) bool {
	switch {
	case a.PID != 0 && a.PID != pid:
		return false
	case a.PID != 0 && a.Port == 0:
		return true
	}
	u, err := url.Parse(a.URL)
	if err != nil || a.URL == "" {
		return false
	}
	if a.discovered { // its port need not be one of those that were asked for
		return true
	}
	port := a.Port
	if port == 0 {
		port = match.PortOf(cmp.Or(u.Port(), standardPort(u.Scheme)))
	}
	return len(connectors.OnPort(port)) > 0
}

// reading is what Actuator says of one connector.
type reading struct {
	name                      string // the connector's, "http-nio-8080"
	busy, maxThreads          *int
	connections, maxConnected *int
	at                        time.Time // when it was asked
}

// meters are the last readings of a process.
type meters struct {
	mu       sync.Mutex
	base     string    // whom the readings are from
	next     time.Time // not asked again before
	asking   bool
	readings []reading
	err      error
}

// ask adds Actuator's figures. The first time it waits for the answer; later
// ones are fetched in the background, so that a busy application does not hold up a scan.
func (d *Discoverer) ask(ctx context.Context, e *entry, base Actuator, connectors match.Connectors) []model.Unavailable {
	m := &e.meters
	m.refresh(ctx, d, d.doorOf(e.PID, base, connectors), base.url(), e.Owner)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.readings {
		r.apply(connectors)
	}
	if m.err == nil || errors.Is(m.err, errPort) { // there is none, or not yet
		return nil
	}
	return []model.Unavailable{{
		What: fmt.Sprintf("Actuator of pid %d", e.PID), Why: m.err.Error(),
		How: exposeMetrics,
	}}
}

// actuatorOf is the first of the Actuators that were given for the process, or one
// found on a management port of its own. The application's own port is never
// asked unless it was given.
func (d *Discoverer) actuatorOf(e *entry, connectors match.Connectors) Actuator {
	for _, a := range append(slices.Clip(d.actuators), Actuator{URL: e.found().Management, discovered: true}) {
		if a.answersFor(e.PID, connectors) {
			return a
		}
	}
	return Actuator{}
}

func (a Actuator) url() string { return strings.TrimSuffix(a.URL, "/") }

// refresh asks when it is time. Of many the turns go round by owner: who answers slowly keeps nobody else's from being asked.
func (m *meters) refresh(ctx context.Context, d *Discoverer, door *door, base, owner string) {
	client, now := actuatorClient(door), d.now
	m.mu.Lock()
	defer m.mu.Unlock()
	if base != m.base { // what another one answered, or still will, is of no use
		m.base, m.asking, m.next, m.readings, m.err = base, false, time.Time{}, nil, nil
	}
	if m.asking || now().Before(m.next) {
		return
	}
	m.asking = true
	first := m.next.IsZero()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Whoever wanted the figures may have gone on with the former ones.
		ctx := context.WithoutCancel(ctx)
		if !d.asks.Take(ctx, owner) { // a thousand of the same owner wait
			m.answered(base, nil, nil, now().Add(actuatorRetry))
			return
		}
		ctx, cancel := context.WithTimeout(ctx, actuatorTimeout)
		defer cancel()
		asked := now()
		readings, err := askAll(ctx, client, base)
		d.asks.Leave()
		for i := range readings {
			readings[i].at = asked
		}
		client.CloseIdleConnections()
		next := now().Add(actuatorEvery)
		if err != nil && !errors.Is(err, errPort) {
			next = now().Add(actuatorRetry)
		}
		m.answered(base, readings, err, next)
	}()
	if first {
		m.mu.Unlock()
		d.await(done)
		m.mu.Lock()
	}
}

// answered takes in what came of a question, unless another Actuator is asked by now.
func (m *meters) answered(base string, readings []reading, err error, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base == base {
		m.readings, m.err, m.asking, m.next = readings, err, false, next
	}
}

// await waits for a first answer. All such waiting together takes no longer than
// one answer may: a snapshot gets its figures, and processes that come and go
// with silent Actuators do not hold up an agent.
func (d *Discoverer) await(done <-chan struct{}) {
	d.patience.Lock()
	defer d.patience.Unlock()
	begin := time.Now()
	timer := time.NewTimer(firstAnswers - d.waited)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	d.waited += time.Since(begin)
}

// apply puts the figures on the connectors they are about. A maximum that
// differs from the configured one is in force: it was changed since the start,
// or by code.
func (r reading) apply(connectors match.Connectors) {
	for _, at := range connectors.Named(r.name) {
		c := connectors[at]
		if !c.Kind().Limits {
			continue
		}
		c.BusyThreads, c.CurrentConnections, c.BusyAt = r.busy, r.connections, r.at
		if c.VirtualThreads == nil || !c.VirtualThreads.Value {
			c.MaxThreads = inForce(c.MaxThreads, r.maxThreads)
		}
		c.MaxConnections = inForce(c.MaxConnections, r.maxConnected)
	}
}

func inForce(configured *model.Setting[int], now *int) *model.Setting[int] {
	if now == nil || configured != nil && (configured.Value == *now || configured.Value < 0 && *now >= math.MaxInt32) {
		return configured
	}
	s := &model.Setting[int]{Value: *now, Kind: model.SourceActuator, Source: "Actuator"}
	if configured != nil {
		s.Note = "configured is " + strconv.Itoa(configured.Value) + " (" + configured.Source + ")"
	}
	return s
}
