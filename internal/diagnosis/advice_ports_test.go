package diagnosis

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Ports in TIME_WAIT: what is seen of them, and that reuse is advised only where it is
// not in force and would help.
func TestPortsInTimeWait(t *testing.T) {
	const reuseAdvice = "net.ipv4.tcp_tw_reuse=1"
	for name, c := range map[string]struct {
		d          model.Destination
		reuse      int
		status     model.Status
		says, does []string
		not        []string
	}{
		"all, of nobody": {
			model.Destination{Ports: 28000, TimeWait: 28000, Unowned: true},
			2, warning,
			[]string{"28,000 of 28,232 local ports are in use towards 10.0.0.9:5432", "all in TIME_WAIT", "cannot be seen"},
			[]string{"keep-alive pool", reuseAdvice},
			[]string{"of them in TIME_WAIT"},
		},
		"most": {
			model.Destination{Ports: 28000, TimeWait: 27000},
			0, warning,
			[]string{", 27,000 of them in TIME_WAIT"},
			[]string{reuseAdvice},
			[]string{"cannot be seen"},
		},
		"few":                     {model.Destination{Ports: 28000, TimeWait: 90}, 2, warning, []string{"28,000 of 28,232"}, nil, []string{"TIME_WAIT (", "of them in TIME_WAIT", reuseAdvice}},
		"reused already":          {model.Destination{Ports: 28000, TimeWait: 27000, Reusable: 3000}, 1, warning, []string{"25,000 of 28,232", "24,000 of them in TIME_WAIT"}, nil, []string{reuseAdvice}},
		"nearly all can be taken": {model.Destination{Ports: 28232, TimeWait: 28000, Reusable: 27000}, 1, ok, nil, nil, []string{"TIME_WAIT"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.d.Address = netip.MustParseAddrPort("10.0.0.9:5432")
			now := tomcat(200, 8192, 100).do(func(l *model.Listener) { l.Process.Busiest = &c.d }).Listener
			v := Judge(symptoms.Input{Now: now, Before: now, Elapsed: time.Second, Sysctl: map[string]int{"ip_local_port_range_min": 32768, "ip_local_port_range_max": 60999, "tcp_tw_reuse": c.reuse}}, reading.DefaultThresholds())
			require.Equal(t, c.status, v.Status)
			text := v.Summary
			for _, f := range v.Findings {
				text += " " + f.Advice
			}
			for _, s := range append(c.says, c.does...) {
				require.Contains(t, text, s)
			}
			for _, s := range c.not {
				require.NotContains(t, text, s)
			}
		})
	}
}
