package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// callPlan runs the command by itself.
func callPlan(args ...string) (code int, stdout, stderr string) {
	var out bytes.Buffer
	cmd := newPlanCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		stderr = err.Error()
		code = command.ExitCode(err)
	}
	return code, out.String(), stderr
}

func TestPlanBadInput(t *testing.T) {
	load := []string{"--requests", "10", "--service-time", "1s"}
	tests := map[string]struct {
		args []string
		want string
	}{
		"no load":           {[]string{"--service-time", "1s"}, "plan needs a load: --requests N for a burst, or --rate R with --duration D"},
		"no service time":   {[]string{"--requests", "10"}, "plan needs --service-time"},
		"zero requests":     {[]string{"--requests", "0", "--service-time", "1s"}, "--requests 0: must be 1 or more"},
		"requests a word":   {[]string{"--requests", "many"}, `invalid argument "many" for "--requests" flag: give a whole number such as 200`},
		"no unit":           {[]string{"--service-time", "5"}, `invalid argument "5" for "--service-time" flag: a time needs its unit: 5s?`},
		"rate a word":       {[]string{"--rate", "fast"}, `"fast" for "--rate" flag: give a number of clients per second`},
		"rate zero":         {append(load, "--rate", "0"), "--rate 0: must be more than 0"},
		"rate without end":  {[]string{"--rate", "5", "--service-time", "1s"}, "--rate 5: say for how long with --duration, or how many with --requests"},
		"rate and both":     {append(load, "--rate", "5", "--duration", "3s"), "with --rate give either --requests or --duration, not both"},
		"duration alone":    {append(load, "--duration", "3s"), "--duration 3s: goes with --rate"},
		"too much":          {[]string{"--requests", "2000000", "--service-time", "1s"}, "--requests 2000000: must be 1000000 or less"},
		"centuries":         {[]string{"--requests", "1000000", "--service-time", "24h", "--threads", "1", "--max-connections", "-1", "--client-timeout", "0"}, "2740 years of work for one thread"},
		"threads":           {append(load, "--threads", "0"), "--max-threads 0: must be 1 or more, or -1 for no limit (virtual threads)"},
		"max connections":   {append(load, "--max-connections", "0"), "--max-connections 0: must be 1 or more, or -1 for no limit"},
		"accept count":      {append(load, "--accept-count", "-1"), "--accept-count -1: must be 1 or more; Tomcat ignores"},
		"somaxconn":         {append(load, "--somaxconn", "0"), "--somaxconn 0: must be more than 0"},
		"somaxconn < 0":     {append(load, "--somaxconn", "-4"), "--somaxconn -4: "},
		"rhythm":            {append(load, "--syn-retries", "cubic"), "--syn-retries cubic: must be linear (Linux 6.5 and newer) or exponential"},
		"timeout from":      {append(load, "--client-timeout-from", "birth"), `--client-timeout-from "birth": give start or connect`},
		"negative timeout":  {append(load, "--client-timeout", "-1s"), "--client-timeout -1s: a time cannot be negative"},
		"long round trip":   {append(load, "--round-trip", "2s"), "--round-trip 2s: must be 500ms or less"},
		"output":            {append(load, "--output", "yaml"), `--output "yaml": give text or json`},
		"argument":          {append(load, "now"), `"now"`},
		"number too large":  {[]string{"--threads", "99999999999"}, `"99999999999" for "--max-threads" flag`},
		"syncookies a word": {append(load, "--syncookies=perhaps"), `"perhaps" for "--syncookies"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := callPlan(tt.args...)
			require.Equal(t, command.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.NotContains(t, stderr, "\n", "one line")
		})
	}
}

func TestPlanText(t *testing.T) {
	code, stdout, stderr := callPlan("--requests", "10000", "--service-time", "5s", "--threads", "1000", "--connect-timeout", "900ms")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "8,293 of 10,000 clients are served, 1,707 give up connecting")
	require.NotContains(t, stdout, "\x1b", "no colour but on a terminal")
}

func TestPlanTakesVirtualThreadsAsNoLimit(t *testing.T) {
	var log bytes.Buffer
	cmd, o := newPlanCommand(), planOptions{input: plan.Input{Threads: 200, AcceptCount: 100}}
	taken{flags: cmd.Flags(), log: &log, port: 8080}.limits(&o, &model.Listener{
		AcceptQueue: &model.AcceptQueue{Limit: 2000},
		Connector: &model.Connector{
			MaxThreads:     &model.Setting[int]{Value: 200, Source: "default"},
			VirtualThreads: &model.Setting[bool]{Value: true},
		},
	})
	require.Equal(t, plan.Input{Threads: -1, AcceptCount: 2000, InForce: true}, o.input)
	require.Contains(t, log.String(), "port 8080: max-threads -1 (no limit: virtual threads)\n")

	_, stdout, _ := callPlan("--requests", "3000", "--service-time", "5s", "--threads", "-1")
	require.Contains(t, stdout, "of work each · threads without limit ·")
	_, stdout, _ = callPlan("--requests", "3000", "--service-time", "5s", "--threads", "-1", "--output", "json")
	var doc struct{ Input, Smallest map[string]any }
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.EqualValues(t, -1, doc.Input["threads"])
	require.NotContains(t, doc.Smallest, "threads")
}

// Every flag reaches the simulation.
func TestPlanFlags(t *testing.T) {
	code, stdout, stderr := callPlan("--rate", "100", "--duration", "2s", "--service-time", "50ms",
		"--threads", "3", "--max-connections", "40", "--accept-count", "50", "--somaxconn", "20", "--max-syn-backlog", "99",
		"--client-timeout", "3s", "--client-timeout-from", "connect", "--connect-timeout", "4s", "--round-trip", "10ms",
		"--syn-retries", "exponential", "--syncookies=false", "--abort-on-overflow", "--output", "json")
	require.Zero(t, code, stderr)
	var doc struct {
		Schema   string
		Input    map[string]any
		Capacity int
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Equal(t, "tcpdiag.plan/v1", doc.Schema)
	require.Equal(t, 61, doc.Capacity)
	require.Equal(t, map[string]any{
		"requests": 200., "rate": 100., "duration_seconds": 2., "service_time_seconds": .05,
		"threads": 3., "max_connections": 40., "accept_count": 50., "somaxconn": 20., "max_syn_backlog": 99.,
		"client_timeout_seconds": 3., "client_timeout_from": "connect", "connect_timeout_seconds": 4.,
		"round_trip_seconds": .01, "syn_retries": "exponential", "syncookies": false, "abort_on_overflow": true,
	}, doc.Input)
}
