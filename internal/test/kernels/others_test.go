package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that links with nothing but the C library comes with it and runs by
// its own loader.
func TestInstall(t *testing.T) {
	if _, err := find("/", "ld-linux-x86-64.so.2"); err != nil {
		t.Skip("not Debian on amd64")
	}
	dir := t.TempDir()
	require.NoError(t, install("/", dir, "uname"))
	for _, name := range []string{"uname", "libc.so.6", "ld-linux-x86-64.so.2"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, info.Mode().IsRegular(), name)
	}
	require.ErrorIs(t, install("/", dir, "no-such-program"), os.ErrNotExist)
}
