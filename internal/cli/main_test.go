package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// Wrong usage gets one line that names the thing, the value and the remedy.
func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"port too high":       {[]string{"snapshot", "--port", "70000"}, 2, `invalid argument "70000" for "-p, --port" flag: a port is a number from 1 to 65535`},
		"port zero":           {[]string{"snapshot", "--port", "0"}, 2, `"0" for "-p, --port"`},
		"port a word":         {[]string{"agent", "--port", "http"}, 2, `"http" for "-p, --port"`},
		"negative interval":   {[]string{"snapshot", "--interval", "-1s"}, 2, "--interval -1s: give a time from 0 (one snapshot)"},
		"no interval":         {[]string{"snapshot", "--interval", "soon"}, 2, `"soon" for "--interval"`},
		"negative lifetime":   {[]string{"agent", "--lifetime", "-1s"}, 2, "--lifetime -1s: give a time from 0"},
		"endless interval":    {[]string{"snapshot", "--interval", "2h"}, 2, "--interval 2h0m0s"},
		"unknown output":      {[]string{"snapshot", "--output", "xml"}, 2, `--output "xml": give text or json`},
		"unknown flag":        {[]string{"snapshot", "--prot", "80"}, 2, "unknown flag: --prot; did you mean --port?"},
		"the nearest flag":    {[]string{"snapshot", "--prt", "80"}, 2, "unknown flag: --prt; did you mean --port?"},
		"no flag is near":     {[]string{"snapshot", "--frobnicate"}, 2, "unknown flag: --frobnicate (see"},
		"dashes for dots":     {[]string{"agent", "--web-listen-address", ":1"}, 2, "did you mean --web.listen-address?"},
		"argument":            {[]string{"snapshot", "http"}, 2, `"http": a port is a number from 1 to 65535`},
		"no such port":        {[]string{"70000"}, 2, `"70000": a port is a number from 1 to 65535`},
		"unknown command":     {[]string{"snapshoot"}, 2, `unknown command "snapshoot"; did you mean snapshot?`},
		"nothing is near":     {[]string{"frobnicate"}, 2, `unknown command "frobnicate"; give a command or a port`},
		"all and a port":      {[]string{"snapshot", "--all", "--port", "80"}, 2, "--all reports every listener; leave it out, or --port and --pid"},
		"a time of no unit":   {[]string{"snapshot", "--interval", "5"}, 2, "a time needs its unit: 5s?"},
		"an incident of none": {[]string{"report", "000007-20260102T031205Z-8080", "--incident-dir", "/does/not/exist"}, 1, "there is no recording in /does/not/exist (--incident-dir)"},
		"pid and all":         {[]string{"agent", "--all-namespaces", "--pid", "1"}, 2, "--all-namespaces and --pid 1: a process is in one network namespace; leave one of the two out"},
		"pid zero":            {[]string{"snapshot", "--pid", "0"}, 2, "a process id is a positive number"},
		"pid of no process":   {[]string{"snapshot", "--pid", "4194304"}, 1, "tcpdiag: pid 4194304: no such process"},
		"limit zero":          {[]string{"snapshot", "--max-connections", "0"}, 2, "from 1, or -1 for no limit"},
		"limit negative":      {[]string{"snapshot", "--max-threads", "-5"}, 2, "give a whole number from 1"},
		"limit a word":        {[]string{"snapshot", "--accept-count", "many"}, 2, "give a whole number from 1"},
		"sampling too often":  {[]string{"agent", "--sample-interval", "1us"}, 2, "--sample-interval 1µs: give a time from 1ms to 10s"},
		"a delay of the past": {[]string{"agent", "--shutdown-delay", "-1s"}, 2, "--shutdown-delay -1s"},
		"scanning too often":  {[]string{"agent", "--scan-interval", "1ms"}, 2, "--scan-interval 1ms"},
		"no listeners":        {[]string{"agent", "--max-listeners", "0"}, 2, "--max-listeners 0"},
		"log level":           {[]string{"agent", "--log-level", "loud"}, 2, `--log-level "loud"`},
		"no config file":      {[]string{"agent", "--config", "/does/not/exist"}, 1, `/does/not/exist: no such file`},
		"config file unsaid":  {[]string{"agent", "--config", ""}, 2, `--config "": give a file`},
		"check of nothing":    {[]string{"agent", "--check-config"}, 2, `--check-config needs --config`},
		"watching too often":  {[]string{"watch", "--interval", "1ms"}, 2, "--interval 1ms: give a time from 100ms to 1m0s"},
		"watching the past":   {[]string{"watch", "--for", "-1s"}, 2, "--for -1s: give a time from 0 (until q or Ctrl-C)"},
		"watched as xml":      {[]string{"watch", "--output", "xml"}, 2, `--output "xml": give text, lines or json`},
		"watching no process": {[]string{"watch", "--pid", "4194304"}, 1, "pid 4194304: "},
		"no port to serve on": {[]string{"agent", "--web.listen-address", "localhost"}, 2, `--web.listen-address "localhost": give HOST:PORT or :PORT, such as :10889`},
		"not a port to serve": {[]string{"agent", "--web.listen-address", ":70000"}, 2, `--web.listen-address ":70000"`},
		"Actuator by FTP":     {[]string{"snapshot", "--actuator", "ftp://u:secret@a/b"}, 2, `--actuator "ftp://u:xxxxx@a/b": give a URL such as http://127.0.0.1:8081/actuator`},
		"no URL":              {[]string{"watch", "--actuator", "http://u:secret@a b/%%"}, 2, "--actuator: this is no URL: give one such as http://127.0.0.1:8081/actuator"},
		"asked by FTP":        {[]string{"mcp", "--agent", "ftp://a"}, 2, `--agent "ftp://a": give a URL such as http://127.0.0.1:10889`},
		"a port of an agent":  {[]string{"mcp", "--agent", "http://a", "--port", "80"}, 2, `--port goes without --agent: the agent has its own`},
		"no agent's client":   {[]string{"mcp", "--http.config.file", "x"}, 2, `--http.config.file goes with --agent`},
		"web config":          {[]string{"agent", "--web.config.file", "/does/not/exist"}, 1, `/does/not/exist`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(tt.args...)
			require.Equal(t, tt.code, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.Equal(t, 1, bytes.Count([]byte(stderr), []byte("\n")), "one line: %q", stderr)
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	root := newRootCommand()
	for _, cmd := range root.Commands() {
		if cmd.Hidden {
			continue // not for people
		}
		t.Run(cmd.Name(), func(t *testing.T) {
			code, stdout, stderr := call(cmd.Name(), "--help")
			require.Zero(t, code)
			require.Empty(t, stderr)
			require.Contains(t, stdout, "Examples:\n  tcpdiag ")
		})
	}
}

func TestVersion(t *testing.T) {
	for _, word := range []string{"version", "--version"} {
		code, stdout, stderr := call(word)
		require.Zero(t, code, stderr)
		require.Regexp(t, `^tcpdiag, version \S+ `, stdout)
	}
}

// A command that is not given is snapshot, with its flags.
func TestWithoutCommand(t *testing.T) {
	root := newRootCommand()
	for _, args := range [][]string{{"8080"}, {"-p", "8080", "--interval", "0"}, {"--pid", "1"}} {
		cmd, rest, err := root.Find(args)
		require.NoError(t, err)
		require.Same(t, root, cmd)
		require.NoError(t, cmd.ParseFlags(rest))
		require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()))
	}
}

// What the tab key offers.
func TestCompletion(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"output":    {[]string{"snapshot", "--output", ""}, "text\njson\n"},
		"watch":     {[]string{"watch", "-o", ""}, "text\nlines\njson\n"},
		"plan":      {[]string{"plan", "--syn-retries", ""}, "linear\nexponential\n"},
		"fail-on":   {[]string{"run", "--fail-on", ""}, "warning\nsaturated\nlosing\ndown\n"},
		"log-level": {[]string{"agent", "--log-level", ""}, "debug\ninfo\nwarn\nerror\n"},
		"mode":      {[]string{"watch", "--handshakes", ""}, "auto\non\noff\n"},
		"incidents": {[]string{"report", "--incident-dir", incidents(t), ""}, "000008-20260102T041205Z-8080\n000007-20260102T031205Z-8080\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, _ := call(append([]string{"__completeNoDesc"}, tt.args...)...)
			require.Zero(t, code)
			require.Equal(t, tt.want, stdout[:strings.LastIndex(stdout, ":")])
		})
	}
}

// Files are offered for files alone.
func TestCompletionOfEveryFlag(t *testing.T) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" || slices.Contains([]string{"report", "json", "junit", "markdown", "baseline", "output"}, f.Name) || strings.Contains(f.Name, "config") {
				return
			}
			_, ok := cmd.GetFlagCompletionFunc(f.Name)
			require.True(t, ok, "%s --%s", cmd.CommandPath(), f.Name)
		})
		for _, below := range cmd.Commands() {
			each(below)
		}
	}
	each(newRootCommand())
}

func incidents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"000007-20260102T031205Z-8080.tcpdiag", "000008-20260102T041205Z-8080.tcpdiag", "other.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	return dir
}

func TestLatestIncidentsAreNamed(t *testing.T) {
	dir := incidents(t)
	code, _, stderr := call("replay", "000001-20260102T031205Z-8080", "--incident-dir", dir)
	require.Equal(t, command.ExitFailure, code)
	require.Contains(t, stderr, "; the latest in "+dir+": 000008-20260102T041205Z-8080, 000007-20260102T031205Z-8080\n")
	code, _, stderr = call("report", "--incident-dir", dir)
	require.Equal(t, command.ExitUsage, code)
	require.Contains(t, stderr, "give a file or the ID of an incident; the latest in "+dir+": 000008-20260102T041205Z-8080,")
}

func TestExitCode(t *testing.T) {
	status := func(s model.Status) error { return &command.Failure{Err: &command.StatusError{Status: s}} }
	tests := map[string]struct {
		err  error
		want int
	}{
		"fine":                      {nil, 0},
		"the machine":               {&command.Failure{Err: errors.New("scan: no permission")}, 1},
		"cobra's complaint":         {errors.New("unknown flag"), 2},
		"the command's complaint":   {&command.Failure{Err: command.Usagef("--interval")}, 2},
		"wrapped complaint":         {&command.Failure{Err: fmt.Errorf("a: %w", command.Usagef("b"))}, 2},
		"warning (--exit-status)":   {status(model.StatusWarning), 10},
		"saturated (--exit-status)": {status(model.StatusSaturated), 11},
		"losing (--exit-status)":    {status(model.StatusLosing), 12},
		"down (--exit-status)":      {status(model.StatusDown), 13},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, command.ExitCode(tt.err)) })
	}
}

func TestCheckConfig(t *testing.T) {
	const path = "agentcmd/testdata/everything.yml"
	code, stdout, stderr := call("agent", "--config", path, "--check-config")
	require.Zero(t, code, stderr)
	require.Equal(t, path+" is valid\n", stdout)

	wrong := filepath.Join(t.TempDir(), "tcpdiag.yml")
	require.NoError(t, os.WriteFile(wrong, []byte("al: true\nport: 80\n"), 0o600))
	code, stdout, stderr = call("agent", "--config", wrong, "--check-config")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Equal(t, "tcpdiag: "+wrong+`:1: unknown key "al": did you mean "all"?
tcpdiag: `+wrong+`:2: unknown key "port": it belongs under "targets"
`, stderr)
}
