package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What is seen in force beats what is configured; nothing else does.
func TestInfer(t *testing.T) {
	code := func() *model.Listener { return tomcat(30, 8192, 100).pool(7).inService(7).waiting(5).Listener }
	got := Infer(code(), code())
	require.Equal(t, 7, got.MaxThreads.Value)
	require.Equal(t, model.SourceInferred, got.MaxThreads.Kind)
	require.Contains(t, got.MaxThreads.Note, "configured is 30")
	v := Judge(Evidence{Now: with(code(), got), Before: with(code(), got)}, DefaultThresholds())
	require.Equal(t, model.CauseMaxThreads, v.Cause)

	nowhere := func() *model.Listener {
		l := code()
		l.Connector.MaxThreads = nil
		return l
	}
	got = Infer(nowhere(), nowhere())
	require.Equal(t, 7, got.MaxThreads.Value, "it is set nowhere that can be read")
	v = Judge(Evidence{Now: with(nowhere(), got), Before: Inferred(nowhere(), got)}, DefaultThresholds())
	require.Equal(t, model.CauseMaxThreads, v.Cause)
	other := nowhere()
	other.Connector.Server = "jvm"
	require.Nil(t, Infer(nowhere(), other).MaxThreads, "another server's threads")

	for name, pair := range map[string][2]*model.Listener{
		"no reading before":  {nil, code()},
		"it grows":           {tomcat(30, 8192, 100).pool(6).inService(6).waiting(5).Listener, code()},
		"a thread is free":   {code(), tomcat(30, 8192, 100).pool(7).inService(6).waiting(5).Listener},
		"nothing waits":      {code(), tomcat(30, 8192, 100).pool(7).inService(7).Listener},
		"as it is set":       {tomcat(7, 8192, 100).pool(7).inService(7).waiting(5).Listener, tomcat(7, 8192, 100).pool(7).inService(7).waiting(5).Listener},
		"pool not countable": {tomcat(30, 8192, 100).inService(7).waiting(5).Listener, tomcat(30, 8192, 100).inService(7).waiting(5).Listener},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, pair[1].Connector.MaxThreads, Infer(pair[0], pair[1]).MaxThreads)
		})
	}

	over := tomcat(200, 10, 100).inService(17).Listener
	require.True(t, Infer(nil, over).MaxConnections.Uncertain)
	require.False(t, over.Connector.MaxConnections.Uncertain, "the reading is not changed")
}

func with(l *model.Listener, c *model.Connector) *model.Listener {
	out := *l
	out.Connector = c
	return &out
}
