package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShortForm(t *testing.T) {
	short := plans(true)
	require.Len(t, short, 2)
	for _, p := range short {
		require.Equal(t, []string{"features", "two"}, names(p.Boots))
	}
}

func TestNarrowed(t *testing.T) {
	all := plans(false)
	require.Equal(t, []string{"features", "two", "networks", "accounts", "java"}, names(options{}.narrowed(all[0].Boots)))
	require.Equal(t, []string{"networks"}, names(options{Boots: "net"}.narrowed(all[0].Boots)))
	require.Equal(t, []string{"million"}, names(options{Boots: "million"}.narrowed(all[0].Boots)), "it takes long")
	require.Equal(t, "TCPDIAG_SHORT_CLIENTS=7", options{Boots: "million", Clients: 7}.narrowed(all[0].Boots)[0].Run[0].Env)
	require.Equal(t, []string{"slow"}, names(options{}.narrowed(all[len(all)-1].Boots)))
	clients := options{Clients: 7}.narrowed(all[0].Boots)
	require.Equal(t, []string{"clients"}, names(clients))
	require.Equal(t, "TCPDIAG_IMPAIRED=7", clients[0].Run[0].Env)
	part := options{Run: "^" + pairedTest + "$"}.narrowed(all[0].Boots)
	require.Equal(t, []string{"part"}, names(part))
	require.Equal(t, twoProcessors("amd64"), part[0].Machine)
	require.Equal(t, []string{"part"}, names(options{Run: pairedTest}.narrowed(all[len(all)-1].Boots)), "the slow machine is booted once")
	require.Equal(t, machineFor("amd64"), options{Run: "^TestSS$"}.narrowed(all[0].Boots)[0].Machine)
}

// What the guests run is there, also when packages have moved.
func TestPackages(t *testing.T) {
	for _, p := range plans(false) {
		for _, b := range slices.Concat(p.Boots, options{Clients: 7}.narrowed(p.Boots)) {
			for _, r := range b.Run {
				folder := strings.TrimPrefix(r.Package, packages)
				tests, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
				require.NoError(t, err)
				require.NotEmpty(t, tests, r.Package)
			}
		}
	}
}

// An arm64 guest runs what is built for it.
func TestAble(t *testing.T) {
	for _, p := range plans(false) {
		for _, b := range p.Boots {
			require.NotEmpty(t, b.Run, "%s of %+v", b.Name, p.series)
			for _, r := range b.Run {
				require.True(t, r.Arm || p.Arch == "amd64", r.Package)
			}
		}
	}
}

func names(all []boot) (names []string) {
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}
