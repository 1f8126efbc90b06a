package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/api"
	tcpdiag "github.com/tcpdiag/tcpdiag/internal/model"
)

// atOnce is how many questions a server has to answer at a time.
const atOnce = 4

// Table is the worst listeners of what is selected, up to a limit.
func (c *Client) Table(ctx context.Context, of Selection, limit int) (*api.Fleet, error) {
	out := &api.Fleet{
		Schema: api.FleetSchema, Time: c.at.UTC().Truncate(time.Second), FromRules: true,
		Counts: map[string]int{}, Warnings: []string{}, Listeners: []api.FleetListener{},
	}
	q := questions{of: of, rules: true}
	found, err := c.survey(ctx, q, limit, out)
	if err == nil && found.total == 0 {
		raw := questions{of: of}
		found, err = c.survey(ctx, raw, limit, out)
		if err == nil && found.total > 0 {
			q, out.FromRules = raw, false
		}
	}
	if err != nil {
		return nil, err
	}
	for s, n := range found.counts {
		if n > 0 {
			out.Counts[tcpdiag.Status(s).String()] = n
			out.Status = tcpdiag.Status(s).String()
		}
	}
	if found.total == 0 {
		return nil, c.nothing(ctx, q, out)
	}
	rows, err := c.rows(ctx, q, limit, found)
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, q, rows); err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, worstFirst)
	for _, r := range rows {
		out.Listeners = append(out.Listeners, r.out)
	}
	out.Omitted = max(found.total-len(rows), 0)
	out.Warnings = append(out.Warnings, c.warnings...)
	return out, nil
}

// survey is what is asked of all listeners.
type survey struct {
	counts [tcpdiag.NumStatuses]int // by status
	total  int
	worst  model.Vector
}

// survey asks for it, and for the agents, at once.
func (c *Client) survey(ctx context.Context, q questions, limit int, out *api.Fleet) (found survey, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		v, err := c.query(ctx, q.counts())
		for _, s := range v {
			if status, ok := statusOf(text(s.Metric, "status")); ok && s.Value > 0 {
				found.counts[status] = int(s.Value)
				found.total += int(s.Value)
			}
		}
		return err
	})
	g.Go(func() (err error) {
		found.worst, err = c.query(ctx, q.trouble(limit))
		return err
	})
	for expr, n := range map[string]*int{q.agents(): &out.Agents, q.missing(): &out.AgentsNotScraped} {
		g.Go(func() error {
			v, err := c.query(ctx, expr)
			if len(v) == 1 {
				*n = int(v[0].Value)
			}
			return err
		})
	}
	err = g.Wait() // before what it found is copied
	return found, err
}

// ErrNothing is what the errors are that say why a table is empty.
var ErrNothing = errors.New("nothing is known")

// nothing says what is missing where there is no listener.
func (c *Client) nothing(ctx context.Context, q questions, out *api.Fleet) error {
	where, at := c.base.Redacted(), out.Time.Format(time.RFC3339)
	switch all, err := c.query(ctx, questions{}.agents()); {
	case err != nil:
		return err
	case len(all) == 0:
		return fmt.Errorf("%w: %s has no agent's series at %s: no agent was scraped (tcpdiag_build_info)", ErrNothing, where, at)
	case out.Agents == 0:
		return fmt.Errorf("%w: no agent of cluster %q at %s", ErrNothing, plain(q.of.Cluster), at)
	case q.of.Namespace != "":
		return fmt.Errorf("%w: no listener of a pod in namespace %q at %s", ErrNothing, plain(q.of.Namespace), at)
	}
	return fmt.Errorf("%w: %d agents are scraped, and none watches a listener at %s", ErrNothing, out.Agents, at)
}

// rows are the worst, and the fullest of those that are well where there is room.
func (c *Client) rows(ctx context.Context, q questions, limit int, found survey) ([]*row, error) {
	const step = 1e6 // see questions.trouble
	var rows []*row
	seen := make(map[key]bool)
	add := func(v model.Vector, status func(float64) float64) {
		for _, s := range v {
			r, ok := newRow(s.Metric, status(float64(s.Value)))
			if ok && !seen[r.key] && len(rows) < limit {
				seen[r.key] = true
				rows = append(rows, r)
			}
		}
	}
	add(found.worst, func(v float64) float64 { return v / step })
	if room := min(limit, found.total) - len(rows); room > 0 {
		calm, err := c.query(ctx, q.calm(room+len(rows))) // some are ok, and were above
		if err != nil {
			return nil, err
		}
		add(calm, func(float64) float64 { return 0 })
	}
	return rows, nil
}

// fill asks for the numbers of these listeners alone.
func (c *Client) fill(ctx context.Context, q questions, rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	m := q.of.of(rows)
	var d details
	limit := func(name string) string { return "tcpdiag_connector_limit" + more(m, `limit="`+name+`"`) + " < Inf" }
	asked := map[string]*values{
		q.turnedAway(m):                       &d.turnedAway,
		q.dropped(m):                          &d.dropped,
		q.fullest(m):                          &d.fullest,
		"tcpdiag_listener_clients_inside" + m: &d.inside,
		limit("max_connections"):              &d.maxConnections,
		limit("max_threads"):                  &d.maxThreads,
		"tcpdiag_listener_limit_used_ratio" + more(m, `limit="max_threads"`): &d.threadRatio,
		"tcpdiag_listener_accept_queue_length" + m:                           &d.queue,
		"tcpdiag_listener_accept_queue_capacity" + m:                         &d.capacity,
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for expr, into := range asked {
		g.Go(func() error {
			v, err := c.query(ctx, expr)
			*into = valuesOf(v)
			return err
		})
	}
	if slices.ContainsFunc(rows, func(r *row) bool { return r.key.listener == "" }) {
		g.Go(func() (err error) {
			d.last, err = c.query(ctx, "last_over_time(tcpdiag_listener_info"+m+"[1h])")
			return err
		})
		g.Go(func() error {
			v, err := c.query(ctx, fmt.Sprintf("max_over_time(tcpdiag_port_refused_clients_total%s[3m]) - min_over_time(tcpdiag_port_refused_clients_total%s[3m])", m, m))
			d.refused = valuesOf(v)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, r := range rows {
		d.fill(r)
	}
	return nil
}
