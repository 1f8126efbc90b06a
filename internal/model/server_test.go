package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A kind is found by its name, and a name that a later version wrote is tolerated.
func TestServers(t *testing.T) {
	names, jars := map[string]bool{}, map[string]bool{}
	for _, s := range Servers() {
		require.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		for _, jar := range s.Jars {
			require.False(t, jar != "" && jars[jar], jar)
			jars[jar] = true
		}
		require.Equal(t, s, (&Connector{Server: s.Name}).Kind())
		require.False(t, s.Limits && !s.JVM, s.Name)
	}
	require.Equal(t, Server{Name: "vertx"}, (&Connector{Server: "vertx"}).Kind())
	require.Equal(t, Server{}, (&Connector{}).Kind())
	require.Equal(t, Server{}, (*Connector)(nil).Kind())
}

// It is asked for every listener of every snapshot.
func TestKindAllocatesNothing(t *testing.T) {
	c := &Connector{Server: "other"}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = c.Kind() }))
}

func TestIsJVM(t *testing.T) {
	for comm, want := range map[string]bool{
		"java": true, "jsvc": true, "jsvc.exec": true, "javac": false, "nginx": false, "": false, "http-nio-8080-A": false,
	} {
		require.Equal(t, want, IsJVM(comm), comm)
	}
}

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
