package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
)

// aPrometheus has one listener of that status.
func aPrometheus(t *testing.T, status string) string {
	t.Helper()
	series := `{"job":"tcpdiag","instance":"10.0.0.1:10889","netns":"1","listener":"[::]:8080","port":"8080","namespace":"shop","pod":"orders-1","process":"java:8080","cause":"max_connections"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := ""
		switch q := r.PostFormValue("query"); {
		case strings.HasPrefix(q, "count_values"):
			result = `{"metric":{"status":"` + status + `"},"value":[1,"1"]}`
		case strings.Contains(q, "1e6 *"):
			result = `{"metric":` + series + `,"value":[1,"` + status + `000000"]}`
		case strings.HasPrefix(q, "count(tcpdiag_build_info"):
			result = `{"metric":{},"value":[1,"1"]}`
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[` + result + `]}}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestFleetExitStatus(t *testing.T) {
	for status, want := range map[string]int{"0": command.ExitOK, "1": command.ExitWarning, "2": command.ExitSaturated, "3": command.ExitLosing, "4": command.ExitDown} {
		url := aPrometheus(t, status)
		code, stdout, stderr := call("fleet", "--prometheus", url, "--exit-status")
		require.Equal(t, want, code, stderr)
		require.Contains(t, stdout, "shop/orders-1")
		require.Empty(t, stderr)
		code, stdout, _ = call("fleet", "--prometheus", url, "-o", "json")
		require.Zero(t, code)
		var document api.Fleet
		require.NoError(t, json.Unmarshal([]byte(stdout), &document))
		require.Equal(t, api.FleetSchema, document.Schema)
	}
}

func TestFleetUsage(t *testing.T) {
	for args, want := range map[string]string{
		"fleet":                              "fleet needs --prometheus URL",
		"fleet --prometheus prometheus:9090": "give a URL such as",
		"fleet --prometheus http://p --at tomorrow":  "give a time of the day",
		"fleet --prometheus http://p --limit 0":      "give a number from 1 to 1000",
		"fleet --prometheus http://p --timeout 0s":   "give a time such as 10s",
		"fleet --prometheus http://p --output yaml":  "give text or json",
		"fleet --prometheus http://p extra-argument": "unknown command",
	} {
		code, _, stderr := call(strings.Fields(args)...)
		require.Equal(t, command.ExitUsage, code, args)
		require.Contains(t, stderr, want, args)
	}
	code, _, stderr := call("fleet", "--prometheus", "http://127.0.0.1:1")
	require.Equal(t, command.ExitFailure, code)
	require.Contains(t, stderr, "connection refused")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}
