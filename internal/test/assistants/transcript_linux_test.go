package assistants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// results is the page that a proof writes.
const results = "../../../docs/results/assistants.md"

// What an assistant is told the morning after: a real overload of a server with Tomcat's
// limits, recorded by a real agent, is asked for through the protocol.
func TestTranscript(t *testing.T) {
	proof.Skip(t)
	binary := built(t)
	require.NoError(t, os.WriteFile("/proc/self/comm", []byte("orders"), 0)) // what the server is called
	port := nettest.FreePorts(t, 1)[0]
	server, err := demo.Listen(t.Context(), demo.ServerOptions{
		Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)).String(), MaxConnections: 20, AcceptCount: 5, MaxThreads: 4, ServiceTime: 2 * time.Second,
	})
	require.NoError(t, err)
	go func() { _ = server.Serve(t.Context()) }()
	address := nettest.FreeAddress(t)
	agent := exec.Command(binary, "agent", "--web.listen-address", address, "--port", strconv.Itoa(port), "--max-connections", "20", "--accept-count", "5", "--max-threads", "4", "--incident-dir", t.TempDir())
	agent.Stderr = t.Output()
	proctest.Run(t, agent)

	session := connected(t, exec.Command(binary, "mcp", "--agent", "http://"+address))
	a := &asker{session: session}
	require.Eventually(t, func() bool { return a.ask("listeners", nil, nil) == nil && strings.Contains(a.last, `"ok"`) }, time.Minute, 200*time.Millisecond)
	outcomes, err := demo.Burst(t.Context(), demo.BurstOptions{Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)).String(), Clients: 60, RequestTimeout: 12 * time.Second, ConnectTimeout: 12 * time.Second})
	require.NoError(t, err)
	var list struct{ Answer api.Incidents }
	require.Eventually(t, func() bool {
		require.NoError(t, a.ask("incidents", nil, &list))
		return len(list.Answer.Incidents) > 0 && list.Answer.Incidents[0].Ended != nil
	}, 5*time.Minute, time.Second)

	var page bytes.Buffer
	fmt.Fprintf(&page, "# An assistant asks\n\nWritten by `make prove PROOF=assistants`. A server with 4 threads, 20 connections and acceptCount 5, whose requests take 2 s, had 60 clients at once, each with 12 s of patience. The clients' own count: %s. An agent recorded it. A minute later these are the calls of `tcpdiag mcp --agent`, by the protocol's Go library, and the answers as they came, without the lines of the fence.\n", outcomes)
	a.page = &page
	require.NoError(t, a.ask("incidents", nil, &list))
	one := list.Answer.Incidents[0]
	require.Contains(t, []string{"max_threads", "max_connections"}, one.Cause)
	var report struct {
		Answer struct {
			Worst struct{ Answer *api.Answer }
		}
	}
	require.NoError(t, a.ask("report", map[string]any{"id": one.ID}, &report))
	require.NoError(t, a.ask("explain", map[string]any{"cause": one.Cause}, nil))
	var planned struct {
		Answer struct{ Outcomes plandoc.PlanOutcomes }
	}
	load := map[string]any{"requests": 60, "service_time_seconds": 2, "client_timeout_seconds": 12, "connect_timeout_seconds": 12, "threads": 4, "max_connections": 20, "accept_count": 5}
	require.NoError(t, a.ask("plan", load, &planned))
	before := planned.Answer.Outcomes.Served
	require.Less(t, max(before, outcomes.Of(demo.OK)), 60, "an overload, really and by the plan")
	load["threads"] = 20
	require.NoError(t, a.ask("plan", load, &planned))
	require.Greater(t, planned.Answer.Outcomes.Served, before)
	require.NotNil(t, report.Answer.Worst.Answer)
	fmt.Fprintf(&page, "\n## What that says\n\n%s", said(report.Answer.Worst.Answer))
	t.Log(page.String())
	if proof.Full() {
		require.NoError(t, os.WriteFile(results, page.Bytes(), 0o644))
	}
}

func said(a *api.Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "* **What:** %s\n* **Why:** %s\n", a.What, a.Why)
	for _, s := range a.Do {
		fmt.Fprintf(&b, "* **Do:** %s", s.Text)
		if s.Setting != "" {
			fmt.Fprintf(&b, " (`%s`: %s → %s)", s.Setting, s.From, s.To)
		}
		b.WriteString("\n")
	}
	if a.Not != "" {
		fmt.Fprintf(&b, "* **Not:** %s\n", a.Not)
	}
	return b.String()
}

func connected(t *testing.T, cmd *exec.Cmd) *mcp.ClientSession {
	t.Helper()
	cmd.Stderr = t.Output()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "transcript", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// asker asks, and writes down what was said.
type asker struct {
	session *mcp.ClientSession
	page    *bytes.Buffer // nil: nothing is written down
	last    string
}

func (a *asker) ask(tool string, arguments map[string]any, into any) error {
	r, err := a.session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err
	}
	if r.IsError {
		return fmt.Errorf("%s: %s", tool, r.Content[0].(*mcp.TextContent).Text)
	}
	a.last = r.Content[1].(*mcp.TextContent).Text
	if into != nil {
		if err := json.Unmarshal([]byte(a.last), into); err != nil {
			return err
		}
	}
	if a.page != nil {
		return a.write(tool, arguments)
	}
	return nil
}

// write has the answer alone.
func (a *asker) write(tool string, arguments map[string]any) error {
	var document struct{ Answer json.RawMessage }
	if err := json.Unmarshal([]byte(a.last), &document); err != nil {
		return err
	}
	given, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	if arguments == nil {
		given = []byte("{}")
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, document.Answer, "", "  "); err != nil {
		return err
	}
	fmt.Fprintf(a.page, "\n## %s `%s`\n\n```json\n%s\n```\n", tool, given, pretty.String())
	return nil
}
