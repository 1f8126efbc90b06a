package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// plan is what `tcpdiag plan` predicts.
type plan struct {
	Capacity *int    `json:"capacity"`
	Done     float64 `json:"clients_done_seconds"`
	Outcomes struct {
		Served         int `json:"served"`
		ConnectTimeout int `json:"connect_timeout"`
		ReadTimeout    int `json:"read_timeout"`
		Reset          int `json:"reset"`
	} `json:"outcomes"`
	Smallest struct {
		Threads        int `json:"threads"`
		MaxConnections int `json:"max_connections"`
		AcceptCount    int `json:"accept_count"`
	} `json:"smallest"`
}

// load is what plan is asked about.
type load struct {
	rig.Limits      // zero: Tomcat's defaults
	requests        int
	service         time.Duration
	connect, client time.Duration
	fromConnect     bool          // the client's timeout runs from the connection
	spread          time.Duration // in which the clients came, 0 is at once
	somaxconn       int
	abort           bool
}

func (l load) flags() []string {
	args := []string{
		"plan", "--output", "json", "--requests", strconv.Itoa(l.requests), "--service-time", l.service.String(),
		"--connect-timeout", l.connect.String(), "--client-timeout", l.client.String(),
	}
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"--threads", l.Threads},
		{"--max-connections", l.MaxConnections},
		{"--accept-count", l.AcceptCount},
		{"--somaxconn", l.somaxconn},
	} {
		if limit.value != 0 {
			args = append(args, limit.name, strconv.Itoa(limit.value))
		}
	}
	if l.spread > 0 {
		rate := float64(l.requests) / l.spread.Seconds()
		args = append(args, "--rate", strconv.FormatFloat(rate, 'f', 1, 64))
	}
	if l.fromConnect {
		args = append(args, "--client-timeout-from", "connect")
	}
	if l.abort {
		args = append(args, "--abort-on-overflow")
	}
	return args
}

// plan asks `tcpdiag plan` and adds its answer to the row.
func (b *scene) plan(l load) plan {
	out, errs, code, err := b.Artifacts.Run(b.Ctx, nil, l.flags()...)
	b.Must(err)
	if code != 0 {
		b.Must(fmt.Errorf("tcpdiag plan ended with %d: %s", code, errs))
	}
	var p plan
	b.Must(json.Unmarshal(out, &p))
	r := result{
		ok: p.Outcomes.Served, connectTimeout: p.Outcomes.ConnectTimeout, readTimeout: p.Outcomes.ReadTimeout,
		reset: p.Outcomes.Reset, wall: time.Duration(p.Done * float64(time.Second)),
	}
	b.planText = joined(b.planText, r.String())
	return p
}

// The tolerance for a plan: outcomes within 2 % of the real number, the wall
// time within 5 %.
const (
	outcomeSlack = .02
	wallSlack    = .05
)

// agrees holds a plan against what the clients counted.
func (b *scene) agrees(p plan, r result) {
	b.Helper()
	for _, text := range disagreements(p, r) {
		b.Holds(false, "%s", text)
	}
}

func disagreements(p plan, r result) (all []string) {
	for _, kind := range []struct {
		name       string
		said, real int
	}{
		{"served", p.Outcomes.Served, r.ok},
		{"connect timeouts", p.Outcomes.ConnectTimeout, r.connectTimeout},
		{"read timeouts", p.Outcomes.ReadTimeout, r.readTimeout},
		{"resets", p.Outcomes.Reset, r.reset},
	} {
		if !near(float64(kind.said), float64(kind.real), outcomeSlack) {
			all = append(all, fmt.Sprintf("plan: %d %s, the clients had %d", kind.said, kind.name, kind.real))
		}
	}
	if !near(p.Done, r.wall.Seconds(), wallSlack) {
		all = append(all, fmt.Sprintf("plan: %.1f s, the clients took %.1f s", p.Done, r.wall.Seconds()))
	}
	return all
}

func near(said, real, slack float64) bool { return math.Abs(said-real) <= slack*real }
