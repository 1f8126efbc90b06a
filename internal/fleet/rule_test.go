package fleet

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Where rules are missing the same is asked that they record.
func TestRawStatusIsTheRule(t *testing.T) {
	text, err := os.ReadFile("../../deploy/prometheus/fleet.rules.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	plain := func(expr string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(expr, "{}", "")), " ")
	}
	first := file.Groups[0].Rules[0]
	require.Equal(t, "listener:tcpdiag_status:max", first.Record)
	require.Equal(t, plain(first.Expr), plain(rawStatus(Selection{})))
}
