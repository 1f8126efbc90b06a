package assistants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// fetched is where prove.sh puts the clients.
const fetched = "../../../.cache/assistants"

// client is the program of one of them.
func client(t *testing.T, parts ...string) string {
	t.Helper()
	proof.Skip(t)
	file, err := filepath.Abs(filepath.Join(append([]string{fetched}, parts...)...))
	require.NoError(t, err)
	if _, err := os.Stat(file); err != nil {
		t.Skip("the client was not fetched: make prove PROOF=assistants does it")
	}
	return file
}

const incident = "000001-20261122T052617Z-43949"

// built is the program.
func built(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tcpdiag")
	out, err := exec.Command("go", "build", "-o", binary, "../../../cmd/tcpdiag").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// served is a tcpdiag mcp's command line, with a listener and a recording to ask for.
func served(t *testing.T) (command []string, port int) {
	t.Helper()
	binary, dir := built(t), t.TempDir()
	recording, err := os.ReadFile("../../cli/testdata/incident.tcpdiag")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, incident+".tcpdiag"), recording, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	port = l.Addr().(*net.TCPAddr).Port
	return []string{binary, "mcp", "--port", fmt.Sprint(port), "--incident-dir", dir, "--handshakes", "off"}, port
}

// questions are calls of every tool.
func questions(port int) map[string][]map[string]any {
	return map[string][]map[string]any{
		"listeners": {{}, {"limit": 1}},
		"snapshot":  {{"interval_seconds": 0.2}, {"port": port, "interval_seconds": 0, "evidence": true}},
		"explain":   {{"cause": "max_threads"}, {"cause": "no_listener"}},
		"plan": {
			{"requests": 300, "service_time_seconds": 5, "client_timeout_seconds": 10},
			{"rate": 50, "duration_seconds": 10, "service_time_seconds": 0.4, "threads": 4, "from_port": port, "evidence": true},
		},
		"incidents": {{}, {"port": 43949, "since": "2026-01-01T00:00:00Z", "limit": 3}},
		"report":    {{"id": incident}, {"id": incident, "evidence": true}},
	}
}

// The Python library's client: every tool, resource and prompt, schemas, errors,
// progress, and a snapshot that is not waited for.
func TestPythonClient(t *testing.T) {
	python := client(t, "python", "bin", "python")
	client(t, "python", "fetched")
	command, port := served(t)
	file := filepath.Join(t.TempDir(), "questions.json")
	text, err := json.Marshal(questions(port))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := exec.Command(python, append([]string{"client.py", file}, command...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "12 calls")
	t.Logf("%s", out)
}

// The inspector in its command-line form: it starts the server for each request.
func TestInspector(t *testing.T) {
	inspector := client(t, "node_modules", ".bin", "mcp-inspector")
	command, port := served(t)
	inspect := func(args ...string) (string, error) {
		cmd := exec.Command(inspector, append(append([]string{"--cli"}, command...), args...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if err != nil {
			return out.String() + errs.String(), err
		}
		return out.String(), nil
	}
	document := func(args ...string) map[string]any {
		t.Helper()
		out, err := inspect(args...)
		require.NoError(t, err, "%v: %s", args, out)
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &v), out)
		return v
	}
	seen := 0
	for _, tool := range document("--method", "tools/list")["tools"].([]any) {
		tool := tool.(map[string]any)
		name := tool["name"].(string)
		require.Equal(t, true, tool["annotations"].(map[string]any)["readOnlyHint"])
		schema := compiled(t, tool["outputSchema"])
		for _, arguments := range questions(port)[name] {
			args := []string{"--method", "tools/call", "--tool-name", name}
			for k, v := range arguments {
				args = append(args, "--tool-arg", fmt.Sprintf("%s=%v", k, v))
			}
			answer := document(args...)
			require.NotEqual(t, true, answer["isError"], "%s: %v", name, answer["content"])
			require.NoError(t, schema.Validate(answer["structuredContent"]), name)
			seen++
		}
	}
	require.Equal(t, 12, seen)
	require.NotEmpty(t, document("--method", "resources/list")["resources"])
	require.Contains(t, fmt.Sprint(document("--method", "resources/read", "--uri", "tcpdiag://runbook/max_threads")), "# max_threads")
	require.Contains(t, fmt.Sprint(document("--method", "resources/read", "--uri", "tcpdiag://incident/"+incident)), "tcpdiag.incident/v1")
	require.Contains(t, fmt.Sprint(document("--method", "prompts/get", "--prompt-name", "why-is-this-service-slow", "--prompt-args", "port=8080")), "port 8080")

	out, err := inspect("--method", "tools/call", "--tool-name", "thread_dump")
	require.Error(t, err)
	require.Contains(t, out, "thread_dump")
	out, _ = inspect("--method", "tools/call", "--tool-name", "snapshot", "--tool-arg", "port=0")
	require.Contains(t, out, "port: give a whole number from 1 to 65535")
	require.True(t, strings.Contains(out, `"isError": true`), out)
	t.Logf("%d calls", seen)
}

func compiled(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", schema))
	out, err := c.Compile("schema.json")
	require.NoError(t, err)
	return out
}
