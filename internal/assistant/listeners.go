package assistant

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// Identity is where a listener is and whose it is.
type Identity struct {
	Address string `json:"address,omitempty" jsonschema:"absent where nothing listens on the port"`
	Port    uint16 `json:"port"`
	NetNS   uint64 `json:"netns,omitempty" jsonschema:"inode of its network namespace"`
	PID     int    `json:"pid,omitempty"`
	Process string `json:"process,omitempty" jsonschema:"the command's name, which the process has chosen"`
	Pod     string `json:"pod,omitempty" jsonschema:"NAMESPACE/NAME in Kubernetes"`
	Server  string `json:"server,omitempty"`
}

func identityOf(l *api.Listener) Identity {
	out := Identity{Address: l.Address, Port: l.Port, NetNS: l.NetNS}
	if p := l.Process; p != nil {
		out.PID, out.Process = p.PID, p.Comm
	}
	if l.Pod != nil {
		out.Pod = l.Pod.Namespace + "/" + l.Pod.Name
	}
	if c := l.Connector; c != nil {
		out.Server = strings.TrimSpace(c.Server + " " + c.Version)
	}
	return out
}

// Line is a listener in brief.
type Line struct {
	Identity
	Status  string `json:"status" jsonschema:"down, losing, saturated, warning or ok"`
	Cause   string `json:"cause,omitempty" jsonschema:"the limit that turns clients away or makes them wait; the tool explain has its runbook"`
	Summary string `json:"summary"`
}

func lineOf(l *api.Listener) Line {
	return Line{identityOf(l), l.Verdict.Status, l.Verdict.Cause, l.Verdict.Summary}
}

// Lines are the listeners, the worst first.
type Lines struct {
	Time        time.Time         `json:"time"`
	Host        string            `json:"host,omitempty"`
	Listeners   []Line            `json:"listeners"`
	Omitted     int               `json:"omitted,omitempty" jsonschema:"listeners that are not listed here"`
	Notes       []string          `json:"notes,omitempty"`
	Unavailable []api.Unavailable `json:"unavailable,omitempty" jsonschema:"what could not be read, why, and how it could be"`
}

// limitIn is how many are listed.
type limitIn struct {
	Limit *int `json:"limit,omitempty" jsonschema:"how many at most, 20 where it is not given"`
}

const (
	defaultLimit = 20
	maxLimit     = 100
	maxRemarks   = 10 // notes and what is unavailable, each
)

func (in limitIn) limit() int {
	if in.Limit == nil {
		return defaultLimit
	}
	return *in.Limit
}

func (s *server) listeners() tool {
	return tool{
		name: "listeners", title: "Listeners",
		about: "Lists the TCP listeners that are watched, the worst first, each with its status (down, losing, saturated, warning, ok), its cause and one sentence. Start here.",
		input: func(in *jsonschema.Schema) { notNull(in); between(in, "limit", 1, maxLimit) },
	}
}

func (s *server) listListeners(ctx context.Context, req *mcp.CallToolRequest, in limitIn) (Lines, *nothing, error) {
	snap, err := s.snapshotOf(ctx, req, Query{Interval: s.interval()})
	if err != nil {
		return Lines{}, nil, err
	}
	out := Lines{Time: snap.Time, Host: snap.Host, Listeners: []Line{}, Omitted: snap.Omitted, Notes: first(snap.Notes, maxRemarks), Unavailable: first(snap.Unavailable, maxRemarks)}
	shown := first(snap.Listeners, in.limit())
	out.Omitted += len(snap.Listeners) - len(shown)
	for i := range shown {
		l := &shown[i]
		out.Listeners = append(out.Listeners, lineOf(l))
	}
	return out, nil, nil
}

// snapshotOf asks the source, and has the listeners in order, the worst first.
func (s *server) snapshotOf(ctx context.Context, req *mcp.CallToolRequest, query Query) (*api.Snapshot, error) {
	defer progress(ctx, req, query.Interval)()
	snap, err := s.source.Snapshot(ctx, query)
	if err != nil {
		return nil, err
	}
	clean(snap)
	for i := range snap.Listeners {
		quoteNames(&snap.Listeners[i])
	}
	slices.SortStableFunc(snap.Listeners, func(a, b api.Listener) int {
		return cmp.Compare(rank(a.Verdict.Status), rank(b.Verdict.Status))
	})
	return snap, nil
}

// rank has the worst status first, and one that is not known last.
func rank(status string) int {
	all := []string{"down", "losing", "saturated", "warning", "ok"}
	if i := slices.Index(all, status); i >= 0 {
		return i
	}
	return len(all)
}

func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// progressEvery is how often is said how far a snapshot has come.
const progressEvery = 500 * time.Millisecond

// progress says until done is called how far a snapshot of that length has come, where
// the client asked for it.
func progress(ctx context.Context, req *mcp.CallToolRequest, length time.Duration) (done func()) {
	token := req.Params.GetProgressToken()
	if token == nil || length < progressEvery {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		began, tick := time.Now(), time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Message: "reading the listeners",
					Progress: min(now.Sub(began), length).Seconds(), Total: length.Seconds(),
				})
			}
		}
	})
	return func() { cancel(); wait.Wait() }
}
