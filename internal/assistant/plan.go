package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// planIn is a load and the limits that it meets.
type planIn struct {
	plandoc.PlanInput
	FromPort *uint16 `json:"from_port,omitempty" jsonschema:"take the limits that are not given from the listener on this port"`
	Evidence bool    `json:"evidence,omitempty" jsonschema:"also return the JSON document (tcpdiag.plan/v1), with its timeline"`
}

// Plan is what would become of the clients.
type Plan struct {
	Summary        string                `json:"summary"`
	Outcomes       plandoc.PlanOutcomes  `json:"outcomes" jsonschema:"clients by how they ended"`
	LatencySeconds *plandoc.PlanLatency  `json:"latency_seconds,omitempty"`
	Smallest       *plandoc.PlanSmallest `json:"smallest,omitempty" jsonschema:"the least settings that serve everybody; absent where none do"`
	Stages         []plandoc.PlanStage   `json:"stages"`
	Notes          []plandoc.PlanNote    `json:"notes"`
	Input          plandoc.PlanInput     `json:"input" jsonschema:"what was simulated"`
	Taken          []string              `json:"taken,omitempty" jsonschema:"what was taken from the listener, and what is not known and was assumed"`
}

// maxRequests keeps a plan below some seconds.
const maxRequests = 100_000

func (s *server) plan() tool {
	return tool{
		name: "plan", title: "Simulate a load",
		about: "Simulates a load on a Tomcat with the given limits: which clients would fail, when each stage fills, and the smallest limits with which none fails. It sends nothing. Give requests (a burst) or rate with duration_seconds, and service_time_seconds. Try a change here before proposing it.",
		input: planSchema,
	}
}

func planSchema(in *jsonschema.Schema) {
	notNull(in)
	in.Required = []string{"service_time_seconds"}
	for name, about := range map[string]string{
		"requests":                "number of clients, each with one request; without rate all at once",
		"rate":                    "clients per second, whatever the server does",
		"duration_seconds":        "how long clients keep coming at rate",
		"service_time_seconds":    "how long a thread works on one request",
		"threads":                 "Tomcat's maxThreads, -1 for no limit (virtual threads); 200 where it is not given",
		"max_connections":         "Tomcat's maxConnections, -1 for no limit; 8192 where it is not given",
		"accept_count":            "Tomcat's acceptCount; 100 where it is not given",
		"accept_count_in_force":   "accept_count is the Send-Q of a listener: somaxconn does not cut it",
		"client_timeout_seconds":  "how long a client waits for its response; 0: for ever; 60 where it is not given",
		"client_timeout_from":     "start: the client's timeout includes connecting; connect: it runs from the connection; start where it is not given",
		"connect_timeout_seconds": "how long a client waits for its connection; 0: until its kernel gives up; 30 where it is not given",
		"syn_retries":             "the clients' kernel: linear (Linux 6.5 and newer) or exponential; linear where it is not given",
		"syncookies":              "net.ipv4.tcp_syncookies of the server; true where it is not given",
		"abort_on_overflow":       "net.ipv4.tcp_abort_on_overflow of the server; false where it is not given",
		"somaxconn":               "net.core.somaxconn of the server; 4096 where it is not given",
		"max_syn_backlog":         "net.ipv4.tcp_max_syn_backlog of the server; 4096 where it is not given",
		"round_trip_seconds":      "time to the server and back; 0: the same host",
		"backend_connections":     "size of the connection pool to a backend that each request calls once",
		"backend_time_seconds":    "time the backend takes to answer",
	} {
		in.Properties[name].Description = about
		if strings.HasSuffix(name, "_seconds") {
			between(in, name, 0, 86400)
		}
	}
	in.Properties["client_timeout_from"].Enum = []any{"start", "connect"}
	in.Properties["syn_retries"].Enum = []any{string(plan.SynRetriesLinear), string(plan.SynRetriesExponential)}
	between(in, "requests", 1, maxRequests)
	between(in, "rate", 0.001, maxRequests)
	between(in, "from_port", 1, 65535)
	for _, name := range []string{"threads", "max_connections"} {
		between(in, name, -1, 1<<30)
	}
	for _, name := range []string{"accept_count", "somaxconn", "max_syn_backlog"} {
		between(in, name, 1, 1<<30)
	}
	between(in, "backend_connections", 0, 1<<30)
}

// usual are Tomcat's, Linux's and k6's own.
func usual() planIn {
	return planIn{PlanInput: plandoc.PlanInput{
		Threads: 200, MaxConnections: 8192, AcceptCount: 100,
		ClientTimeoutSeconds: new(60.0), ClientTimeoutFrom: "start", ConnectTimeoutSeconds: new(30.0),
		SynRetries: string(plan.SynRetriesLinear), Syncookies: true, Somaxconn: 4096, MaxSynBacklog: 4096,
	}}
}

func (s *server) simulate(ctx context.Context, req *mcp.CallToolRequest, given planIn) (out Plan, evidence *plandoc.Plan, err error) {
	in := usual()
	if given.FromPort != nil {
		if out.Taken, err = s.fromListener(ctx, *given.FromPort, &in.PlanInput); err != nil {
			return out, nil, err
		}
	}
	// What was given beats the rest, in_force too: a value that is absent leaves its field.
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return out, nil, errors.New("arguments: not what the schema says")
	}
	if in.Rate != nil && in.DurationSeconds != nil && *in.Rate**in.DurationSeconds > maxRequests {
		return out, nil, fmt.Errorf("rate and duration_seconds: at most %d requests; scale the load and the limits down by the same factor", maxRequests)
	}
	p, err := s.planOf(ctx, in.Input())
	if err != nil {
		return out, nil, err
	}
	doc := plandoc.NewPlan(p)
	if in.Evidence {
		evidence = &doc
	}
	return Plan{doc.Summary, doc.Outcomes, doc.LatencySeconds, doc.Smallest, doc.Stages, doc.Notes, doc.Input, out.Taken}, evidence, nil
}

// planOf simulates one load at a time. Whoever gives up does not wait for the end.
func (s *server) planOf(ctx context.Context, in plan.Input) (*plan.Plan, error) {
	select {
	case s.planning <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		plan *plan.Plan
		err  error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-s.planning }()
		p, err := plan.New(in)
		done <- result{p, err}
	}()
	select {
	case r := <-done:
		return r.plan, spelled(r.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// spelled has a complaint with the names of the tool's input instead of flags.
func spelled(err error) error {
	var wrong *plan.InputError
	if !errors.As(err, &wrong) {
		return err
	}
	return errors.New(property("--"+wrong.Name) + ": " + flag.ReplaceAllStringFunc(wrong.Remedy, property))
}

var flag = regexp.MustCompile(`--[a-z-]+`)

func property(name string) string {
	out := strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_")
	switch out {
	case "duration", "service_time", "client_timeout", "connect_timeout", "round_trip", "backend_time":
		return out + "_seconds"
	case "max_threads": // the flag of that name
		return "threads"
	}
	return out
}
