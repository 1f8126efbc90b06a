package attacks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// commands are what a person runs next to a hostile process.
func commands() map[string][]string {
	return map[string][]string{
		"snapshot": {"snapshot", "--all", "--interval", "2s", "--output", "json"},
		"watch":    {"watch", "--all", "--interval", "500ms", "--for", "3s", "--output", "json"},
		"plan":     {"plan", "--from-port", strconv.Itoa(honestPort), "--requests", "100", "--service-time", "1s", "--output", "json"},
		"screen":   {"snapshot", "--all", "--interval", "2s"},
		"page":     {"snapshot", "--all", "--interval", "1s", "--report", "REPORT"},
	}
}

// TestCommands: each command for each viewer, in the manifests' memory, beside one
// attacker of each kind.
func TestCommands(t *testing.T) {
	expensive(t)
	program := build(t)
	t.Logf("%-10s %-10s %7s %8s %8s  %s", "as", "command", "all", "took", "end", "what it said of the honest server")
	for _, v := range viewers(t) {
		t.Run(v.name, func(t *testing.T) {
			s := &scene{viewer: v, java: asJava(t), pods: nettest.Namespace(t)}
			s.honest(t)
			s.attackers(t)
			for _, name := range sortedKeys(commands()) {
				s.command(t, program, name, commands()[name])
			}
		})
	}
}

// attackers starts one of each kind, each on a port of its own.
func (s *scene) attackers(t *testing.T) {
	t.Helper()
	all := together()
	for i, name := range sortedKeys(all) {
		a, port := all[name].seenBy(s.viewer), hostilePort+10+i
		a.part = part{From: port, To: port + 1, Threads: []string{fmt.Sprintf("http-nio-%d-e", port)}}
		a.start(t, s.pods, s.java)
	}
}

// command runs one to its end, and another time until SIGTERM.
func (s *scene) command(t *testing.T, program, name string, args []string) {
	t.Helper()
	whole := s.runs(t, program, args)
	begin := time.Now()
	require.NoError(t, whole.cmd.Wait(), "%s: %s", name, &whole.errs)
	took := time.Since(begin)
	whole.group.end()
	page, _ := os.ReadFile(whole.report)
	require.Equal(t, whole.report != "", len(page) > 0)
	for _, text := range []string{whole.out.String(), whole.errs.String(), string(page)} {
		requireDiscreet(t, strings.ReplaceAll(text, "\x1b[", "")) // the screen's own colours
	}
	said := s.heeded(t, name, whole.out.Bytes())
	group := whole.group.most.Load()
	assert.LessOrEqual(t, group, int64(maxPeak), "%s: memory with its child processes", name)
	require.Zero(t, whole.group.killed())
	t.Logf("%-10s %-10s %6dM %8s %8s  %s", s.viewer.name, name, group>>20, ms(took), ms(s.ended(t, program, name, args)), said)
}

// ended is how long a command that would go on takes to end on SIGTERM.
func (s *scene) ended(t *testing.T, program, name string, args []string) time.Duration {
	t.Helper()
	if name == "plan" { // it has ended by itself
		return 0
	}
	args = slices.Clone(args)
	args[slices.Index(args, "--interval")+1] = "60s"
	if i := slices.Index(args, "--for"); i > 0 {
		args[i+1] = "60s"
	}
	c := s.runs(t, program, args)
	time.Sleep(300 * time.Millisecond) // it is in the midst of it, whatever that is
	begin := time.Now()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	_ = c.cmd.Wait()
	c.group.end()
	took := time.Since(begin)
	assert.LessOrEqual(t, took, maxEnd+s.slack(), "%s: SIGTERM", name)
	return took
}

// slack is what the machine may add: a busy one starts a process late.
func (s *scene) slack() time.Duration { return 3 * time.Second }

// heeded is what a command said of the honest server.
func (s *scene) heeded(t *testing.T, name string, out []byte) string {
	t.Helper()
	switch name {
	case "plan":
		require.Contains(t, string(out), strconv.Itoa(honestLimit))
		return fmt.Sprintf("%d connections", honestLimit)
	case "screen", "page":
		require.Contains(t, string(out), strconv.Itoa(honestPort))
		return "shown"
	}
	last := json.NewDecoder(bytes.NewReader(out))
	known := false
	for n := 1; ; n++ {
		var raw json.RawMessage
		if last.Decode(&raw) != nil {
			return fmt.Sprintf("queue %d in %d documents, its limit known: %v", queued, n-1, known)
		}
		found := false
		for _, l := range decode(t, string(raw)).Listeners {
			if l.Port == honestPort {
				found = true
				require.Equal(t, queued, l.AcceptQueue.Length)
				known = l.Connector.MaxConnections != nil && l.Connector.MaxConnections.Value == honestLimit
			}
		}
		require.True(t, found)
	}
}

// running is a command that was started.
type running struct {
	cmd       *exec.Cmd
	group     *group
	out, errs buffer
	report    string // the page's file
}

func (s *scene) runs(t *testing.T, program string, args []string) *running {
	t.Helper()
	r := &running{group: newGroup(t)}
	args = slices.Clone(args)
	if i := slices.Index(args, "REPORT"); i > 0 {
		r.report = filepath.Join(public(t), "report.html")
		require.NoError(t, os.Chmod(filepath.Dir(r.report), 0o777))
		args[i] = r.report
	}
	line := s.viewer.line(r.group, s.pods, program, args...)
	r.cmd = exec.CommandContext(t.Context(), line[0], line[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errs
	require.NoError(t, r.cmd.Start())
	r.group.measure()
	return r
}
