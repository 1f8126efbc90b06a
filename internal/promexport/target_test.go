package promexport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/config"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

// The labels that the user chose are on the info series and on no other.
func TestLabelsOfTheConfigurationFile(t *testing.T) {
	s := fleet(2)
	s.TargetInfos = []model.TargetInfo{
		{Port: 8080, NetNS: netns, Labels: map[string]string{"team": "payments", "app": "shop", "zone": "a\"b\xff"}},
		{Port: 8080, NetNS: netns, Labels: map[string]string{"app": "twin"}},
		{Port: 8080, NetNS: 5, Labels: map[string]string{"app": "elsewhere"}},
		{Port: 8081, NetNS: netns},
	}
	body := scrape(t, handler(s), nil).body
	require.Contains(t, body, `# TYPE tcpdiag_target_info gauge
tcpdiag_target_info{app="shop",netns="4026531840",port="8080",team="payments",zone="a\"b\\xff"} 1
tcpdiag_target_info{app="elsewhere",netns="5",port="8080"} 1
tcpdiag_target_info{netns="4026531840",port="8081"} 1
`)
	require.NotContains(t, body, "twin", "the first of two wins")
	require.Equal(t, besidesInfo(scrape(t, handler(fleet(2)), nil).body), besidesInfo(body), "nothing else changes")
}

// besidesInfo are the lines of all other series.
func besidesInfo(body string) (out []string) {
	for line := range strings.Lines(ours(body)) {
		if !strings.HasPrefix(line, "tcpdiag_target_info{") {
			out = append(out, line)
		}
	}
	return out
}

// A join must not overwrite a label, so the names of those that have netns are
// not to be had.
func TestReservedLabelNames(t *testing.T) {
	reserved := config.Reserved()
	for _, d := range promexport.Metrics() {
		if !slices.Contains(d.Labels, "netns") || slices.Contains(d.Labels, "peer") { // a peer's have no port to join on
			continue
		}
		for _, name := range d.Labels {
			require.Contains(t, reserved, name, d.Name)
		}
	}
}

func TestConfigReload(t *testing.T) {
	s := fleet(0)
	s.Self.Config.Successful = true
	body := scrape(t, handler(s), nil).body
	require.Contains(t, body, "\ntcpdiag_config_last_reload_successful 1\n")
	require.Contains(t, body, "\ntcpdiag_config_last_reload_success_timestamp_seconds 1.7778564e+09\n")
	s.Self.Config.Successful = false
	require.Contains(t, scrape(t, handler(s), nil).body, "\ntcpdiag_config_last_reload_successful 0\n")
	s.Self.Config = nil
	require.NotContains(t, scrape(t, handler(s), nil).body, "tcpdiag_config_")
}
