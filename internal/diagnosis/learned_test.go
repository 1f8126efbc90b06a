package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// On a busy machine the settings are read after the first snapshot was made: what that one
// counted is held against them all the same, if it is of the same process.
func TestSettingsThatWereReadLate(t *testing.T) {
	full := func() look { return tomcat(20, 100, 10).pool(20).inService(20).waiting(40) }
	early := func() look {
		k := full()
		k.Connector.MaxThreads, k.Connector.MaxConnections = nil, nil
		return k
	}
	unseen := func() look {
		k := full()
		k.Connector = nil
		return k
	}
	restarted := func() look {
		k := early()
		k.Process.StartTime++
		return k
	}
	calm := func() look {
		k := tomcat(20, 100, 10).pool(20).inService(3)
		k.Connector.MaxThreads, k.Connector.MaxConnections = nil, nil
		return k
	}
	for name, c := range map[string]struct {
		before look
		want   model.Status
	}{
		"settings known": {full(), model.StatusSaturated}, "settings read late": {early(), model.StatusSaturated},
		"connector found late": {unseen(), model.StatusSaturated},
		"another process":      {restarted(), model.StatusOK}, "threads that were free": {calm(), model.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			was := *c.before.Listener
			v := Judge(symptoms.Input{Now: full().Listener, Before: c.before.Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, c.want, v.Status, v.Summary)
			require.Equal(t, was, *c.before.Listener, "what was handed on does not change")
		})
	}
}
