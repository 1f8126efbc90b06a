package springboot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A volume of Kubernetes: the files are links into a hidden directory, which is
// itself a link to one with a date in its name.
func TestConfigTreeOfAVolume(t *testing.T) {
	dir := t.TempDir()
	p := jarLayout(t, dir, "3.5.16", binderCase{
		Files: map[string]string{
			"etc/..2026_01_01/server.port": "1\n", "etc/..2026_01_01/nested/x": "two\nlines\n",
			"classpath:application.yml": "spring.config.import: configtree:etc/\n",
		},
	})
	etc := filepath.Join(dir, "cwd", "etc")
	require.NoError(t, os.Symlink("..2026_01_01", filepath.Join(etc, "..data")))
	require.NoError(t, os.Symlink("..data/server.port", filepath.Join(etc, "server.port")))
	require.NoError(t, os.Symlink("..data/nested", filepath.Join(etc, "server")))
	e, err := Load(p)
	require.NoError(t, err)
	require.Empty(t, e.Unavailable())
	for name, want := range map[string]string{"server.port": "1", "server.x": "two\nlines\n"} {
		v, ok, err := e.Get(name)
		require.NoError(t, err)
		require.True(t, ok, name)
		require.Equal(t, want, v.Text)
		require.Equal(t, "config tree etc", v.Source)
	}
}

func TestConfigTreeMissing(t *testing.T) {
	for location, said := range map[string]int{"configtree:none/": 1, "optional:configtree:none/": 0, "configtree:none/*/": 0} {
		p := jarLayout(t, t.TempDir(), "3.5.16", binderCase{Args: []string{"--spring.config.import=" + location}})
		e, err := Load(p)
		require.NoError(t, err)
		require.Len(t, e.Unavailable(), said, location)
	}
}
