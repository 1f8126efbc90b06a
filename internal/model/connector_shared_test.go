package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitsOfProcessesThatShareAPort(t *testing.T) {
	one := &Connector{
		MaxThreads:     &Setting[int]{Value: 6, Kind: SourceFile, Source: "server.xml"},
		MaxConnections: &Setting[int]{Value: -1},
		AcceptCount:    &Setting[int]{Value: 100},
		PoolThreads:    new(6),
	}
	require.Same(t, one, one.Times(1))
	require.Same(t, one, one.Times(0), "whose they are is not known")
	require.Nil(t, (*Connector)(nil).Times(2))

	all := one.Times(3)
	require.Equal(t, 18, all.MaxThreads.Value)
	require.Equal(t, "6 in each of 3 processes that share the port", all.MaxThreads.Note)
	require.Equal(t, "server.xml", all.MaxThreads.Source)
	require.Equal(t, -1, all.MaxConnections.Value, "no limit stays none")
	require.Equal(t, 100, all.AcceptCount.Value, "each socket has its own queue")
	require.Nil(t, all.PoolThreads)
	require.Equal(t, 6, one.MaxThreads.Value, "what discovery keeps stays")
	require.Equal(t, 6, *one.PoolThreads)
}
