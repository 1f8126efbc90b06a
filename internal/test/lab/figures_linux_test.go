package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func TestParseK6(t *testing.T) {
	// What the script's handleSummary wrote for 300 virtual users.
	const summary = `{"ok":{"count":297,"rate":28.9},"read_timeout":{"count":2,"rate":0.1},"closed":{"count":1,"rate":0.1},
		"began":{"min":12,"med":40,"max":112},"ended":{"min":5040,"med":5100,"max":10212},"latency":{"min":5010,"med":5020.5,"max":10100}}`
	got, err := parseK6([]byte(summary))
	require.NoError(t, err)
	require.Equal(t, result{
		ok: 297, readTimeout: 2, other: 1,
		spread: 100 * time.Millisecond, wall: 10200 * time.Millisecond,
		median: 5020500 * time.Microsecond, max: 10100 * time.Millisecond,
	}, got)
	require.Equal(t, "297 ok, 2 read timeouts, 1 otherwise in 10.2 s", got.String())
	_, err = parseK6([]byte("panic"))
	require.ErrorContains(t, err, `"panic"`)
}

func TestParseLocust(t *testing.T) {
	const out = "Type     Name  # reqs\nGET      hello  1600\n{\"requests\": 1600, \"failures\": 0, \"users_answered\": 100}\n"
	got, err := parseLocust([]byte(out))
	require.NoError(t, err)
	require.Equal(t, visits{Requests: 1600, UsersAnswered: 100}, got)
	_, err = parseLocust([]byte("Type     Name\n"))
	require.ErrorContains(t, err, "no report")
}

func TestPlanFlags(t *testing.T) {
	got := load{
		Limits: rig.Limits{Threads: 2, AcceptCount: 1}, requests: 10, service: time.Second, connect: 900 * time.Millisecond,
		client: time.Minute, fromConnect: true, spread: 250 * time.Millisecond, somaxconn: 128, abort: true,
	}.flags()
	require.Equal(t, "plan --output json --requests 10 --service-time 1s --connect-timeout 900ms --client-timeout 1m0s "+
		"--threads 2 --accept-count 1 --somaxconn 128 --rate 40.0 --client-timeout-from connect --abort-on-overflow", strings.Join(got, " "))
}

func TestAgrees(t *testing.T) {
	for _, tt := range []struct {
		name         string
		served, lost int
		done         float64
		wrong        []string
	}{
		{"the same", 8293, 1707, 45, nil},
		{"within 2 % and 5 %", 8200, 1733, 47, nil},
		{"too many lost", 8293, 1745, 45, []string{"plan: 1745 connect timeouts, the clients had 1707"}},
		{"too slow", 8293, 1707, 47.5, []string{"plan: 47.5 s, the clients took 45.0 s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p plan
			p.Outcomes.Served, p.Outcomes.ConnectTimeout, p.Done = tt.served, tt.lost, tt.done
			require.Equal(t, tt.wrong, disagreements(p, result{ok: 8293, connectTimeout: 1707, wall: 45 * time.Second}))
		})
	}
	require.NotEmpty(t, disagreements(plan{}, result{reset: 1}), "an outcome that was not foreseen at all")
}

func TestWorst(t *testing.T) {
	made := func(status string, accepted int) rig.Listener {
		l := rig.Listener{Port: port, Connections: &rig.Connections{Accepted: accepted}}
		l.Verdict.Status = status
		return l
	}
	var w watch
	for _, l := range []rig.Listener{made("ok", 900), made("losing", 5), made("saturated", 800), made("losing", 7), made("losing", 6)} {
		w.looks = append(w.looks, look{listeners: []rig.Listener{l}})
	}
	require.Equal(t, 7, worstOf(w.on(port)).Connections.Accepted)
	require.Nil(t, worstOf(w.on(1)))
}
