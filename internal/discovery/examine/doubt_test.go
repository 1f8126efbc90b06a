package examine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestDoubtCode(t *testing.T) {
	c := func() model.Connector {
		return model.Connector{
			MaxConnections: &model.Setting[int]{Value: 8192, Kind: model.SourceDefault},
			MaxThreads:     &model.Setting[int]{Value: 30, Kind: model.SourceArgument},
			AcceptCount:    &model.Setting[int]{Value: 100, Kind: model.SourceFile},
		}
	}
	got := c()
	doubtCode(&got, classpath.CodeLimits{})
	require.Equal(t, c(), got)

	doubtCode(&got, classpath.CodeLimits{MaxThreads: "setMaxThreads in Web"})
	require.True(t, got.MaxThreads.Uncertain, "code beats an argument")
	require.Contains(t, got.MaxThreads.Note, "setMaxThreads in Web")
	require.False(t, got.MaxConnections.Uncertain)
	require.False(t, got.AcceptCount.Uncertain)

	got = c()
	doubtCode(&got, classpath.CodeLimits{Defaults: "setDefaultProperties in App"})
	require.True(t, got.MaxConnections.Uncertain, "they replace a default")
	require.False(t, got.MaxThreads.Uncertain)
	require.False(t, got.AcceptCount.Uncertain, "and nothing else")
}
