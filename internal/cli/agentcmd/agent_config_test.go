package agentcmd

import (
	_ "embed"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// everything is a file with each setting.
//
//go:embed testdata/everything.yml
var everything string

// configuredBy parses flags, and a file of that text unless it is empty.
func configuredBy(t *testing.T, text string, args ...string) schedule.Options {
	t.Helper()
	var o agentOptions
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	o.flags(flags)
	if text != "" {
		path := filepath.Join(t.TempDir(), "tcpdiag.yml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		args = append(args, "--config", path)
	}
	require.NoError(t, flags.Parse(args))
	opt, err := o.configured(flags.Changed)
	require.NoError(t, err)
	opt.Log, opt.Now = nil, nil
	return opt
}

func TestNoFileAndAnEmptyFileAreTheSame(t *testing.T) {
	def := schedule.Defaults()
	def.Log, def.Now = nil, nil
	require.Equal(t, def, configuredBy(t, ""))
	require.Equal(t, def, configuredBy(t, "# nothing\n"))
}

func TestFileIsTakenOver(t *testing.T) {
	got := configuredBy(t, everything)
	require.Empty(t, got.Ports)
	require.Empty(t, got.PIDs)
	require.True(t, got.All)
	require.Equal(t, 7, got.MaxListeners)
	require.Equal(t, 20*time.Millisecond, got.SampleInterval)
	require.Equal(t, 2*time.Second, got.ScanInterval)
	require.Equal(t, map[string]string{"team": "x"}, got.Labels)
	require.Equal(t, watchlist.Overrides{MaxThreads: watchlist.ByHand(new(8), "tcpdiag.yml line 15")}, got.Limits)
	require.Equal(t, "http://127.0.0.1:9090", got.Actuator)
	require.Equal(t, []watchlist.Target{
		{
			Ports: []uint16{8080}, Labels: map[string]string{"app": "shop"}, Actuator: "http://127.0.0.1:8081",
			Limits: watchlist.Overrides{
				MaxConnections: watchlist.ByHand(new(5), "tcpdiag.yml line 5"),
				AcceptCount:    watchlist.ByHand(new(6), "tcpdiag.yml line 5"),
			},
		},
		{Ports: []uint16{8443, 9443}},
		{Ports: []uint16{8009}, PID: 42},
		{PID: 43},
	}, got.Targets)
}

func TestFlagsBeatTheFile(t *testing.T) {
	got := configuredBy(t, everything, "--all=false", "--max-listeners", "100", "--sample-interval", "10ms", "--scan-interval", "1s",
		"--actuator", "http://127.0.0.1:1", "--max-connections", "55")
	require.False(t, got.All)
	require.Equal(t, 100, got.MaxListeners, "also when it is the default")
	require.Equal(t, 10*time.Millisecond, got.SampleInterval)
	require.Equal(t, time.Second, got.ScanInterval)
	require.Equal(t, "http://127.0.0.1:1", got.Actuator)
	flag := watchlist.ByHand(new(55), "flag --max-connections")
	require.Equal(t, flag, got.Limits.MaxConnections)
	require.Equal(t, "tcpdiag.yml line 15", got.Limits.MaxThreads.Source)
	for _, target := range got.Targets {
		require.Equal(t, flag, target.Limits.MaxConnections, "for all")
	}
	require.Equal(t, "tcpdiag.yml line 5", got.Targets[0].Limits.AcceptCount.Source)
}

func TestPortsAndPIDsBeatTheTargets(t *testing.T) {
	got := configuredBy(t, everything, "--port", "9443", "--port", "1", "--port", "8009")
	require.Equal(t, []uint16{9443, 1, 8009}, got.Ports)
	require.Equal(t, []watchlist.Target{{Ports: []uint16{9443}}}, got.Targets, "the settings of the port stay")

	got = configuredBy(t, everything, "--pid", "7")
	require.Equal(t, []int{7}, got.PIDs)
	require.Empty(t, got.Targets)
	require.Equal(t, map[string]string{"team": "x"}, got.Labels)
}
