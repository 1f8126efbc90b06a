package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const available = `Package: linux-image-5.10.0-30-cloud-amd64
Architecture: amd64

Package: linux-image-5.10.0-32-cloud-amd64
Package: linux-image-5.10.0-32-cloud-amd64-unsigned
Package: linux-image-5.10.0-32-amd64
Package: linux-image-6.12.95+deb12-cloud-amd64
Package: linux-image-6.12.107+deb13-cloud-amd64
Package: linux-image-6.12.107+deb13-cloud-arm64
Package: linux-image-6.16.3+deb13-cloud-amd64
Package: linux-image-6.16.12+deb13-cloud-amd64
Package: linux-image-6.18.5+deb13-cloud-amd64
Package: linux-image-7.3.4+deb13-cloud-amd64
Package: linux-binary-7.3.4+deb13-cloud-amd64
Package: linux-image-cloud-amd64
`

func TestPick(t *testing.T) {
	all, err := releases(strings.NewReader(available))
	require.NoError(t, err)
	for _, tc := range []struct {
		s    series
		want string
	}{
		{series{Version: "5.10", Arch: "amd64"}, "5.10.0-32-cloud-amd64"},
		{series{Version: "6.12", Arch: "amd64"}, "6.12.107+deb13-cloud-amd64"},
		{series{AtLeast: "6.16", Arch: "amd64"}, "6.16.12+deb13-cloud-amd64"},
		{series{AtLeast: "6.17", Arch: "amd64"}, "6.18.5+deb13-cloud-amd64"},
		{series{Arch: "amd64"}, "7.3.4+deb13-cloud-amd64"},
		{series{Version: "6.12", Arch: "arm64"}, "6.12.107+deb13-cloud-arm64"},
	} {
		r, err := pick(all, tc.s)
		require.NoError(t, err)
		require.Equal(t, tc.want, r.Name)
	}
	_, err = pick(all, series{Version: "4.19", Arch: "amd64"})
	require.ErrorContains(t, err, "4.19")
}

func TestPackagesOfARelease(t *testing.T) {
	all, err := releases(strings.NewReader(available))
	require.NoError(t, err)
	newest, err := pick(all, series{Arch: "amd64"})
	require.NoError(t, err)
	require.Equal(t, []string{
		"linux-binary-7.3.4+deb13-cloud-amd64",
		"linux-modules-7.3.4+deb13-cloud-amd64", "linux-base-7.3.4+deb13-cloud-amd64",
	}, newest.Packages)
	oldest, err := pick(all, series{Version: "5.10", Arch: "amd64"})
	require.NoError(t, err)
	require.Equal(t, []string{"linux-image-5.10.0-32-cloud-amd64"}, oldest.Packages)
}
