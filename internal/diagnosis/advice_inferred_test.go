package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Nobody lowers a limit by advice to raise it: one that was inferred while slots could
// not be counted is the least that the limit can be.
func TestAdviceAboveTheLeastLimit(t *testing.T) {
	advice := func(uncertain bool) string {
		l := tomcat(200, 60, 100).inService(60).queue(101, 4*time.Second).Listener
		l.Connector.MaxConnections = &model.Setting[int]{Value: 60, Kind: model.SourceInferred, Source: "inferred", Uncertain: uncertain}
		v := Judge(symptoms.Input{Now: l, Before: l, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
		require.Equal(t, model.CauseMaxConnections, v.Cause)
		return v.Findings[0].Advice
	}
	require.Contains(t, advice(true), "60 is the least that the limit in force can be")
	require.NotContains(t, advice(false), "least")
}
