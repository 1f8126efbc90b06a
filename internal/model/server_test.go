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
