package discovery

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeJar is a fat jar of 25 MB: the application that the other tests build,
// with what is missing added.
func largeJar(b *testing.B, dir string) {
	b.Helper()
	const size = 25 << 20
	found, err := filepath.Glob(filepath.Join(userCache(b), "bootapp-3.5.16-*.jar"))
	require.NoError(b, err)
	if len(found) == 0 {
		b.Skip("no application has been built: run the tests with TCPDIAG_TESTS=servers")
	}
	jar, err := os.ReadFile(found[0])
	require.NoError(b, err)
	// What stands in front of an archive is not part of it.
	padding := make([]byte, max(0, size-len(jar)))
	require.NoError(b, os.WriteFile(filepath.Join(dir, "app.jar"), append(padding, jar...), 0o600))
}

func userCache(b *testing.B) string {
	b.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(b, err)
	return filepath.Join(dir, "tcpdiag")
}

// BenchmarkDiscover is the first examination of a fat jar of 25 MB, files cached.
func BenchmarkDiscover(b *testing.B) {
	s := startLarge(b)
	for b.Loop() {
		d := inChildren(b)
		connectors, _ := d.Discover(b.Context(), s.pid, s.start, ports(8080))
		require.Equal(b, "spring-boot", connectorOn(b, connectors, 8080).Framework)
	}
}

// BenchmarkDiscoverAgain is every further look.
func BenchmarkDiscoverAgain(b *testing.B) {
	s := startLarge(b)
	d := inChildren(b)
	d.Discover(b.Context(), s.pid, s.start, ports(8080))
	b.ReportAllocs()
	for b.Loop() {
		d.Discover(b.Context(), s.pid, s.start, ports(8080))
	}
}

func startLarge(b *testing.B) *server {
	b.Helper()
	dir := b.TempDir()
	largeJar(b, dir)
	return startFake(b, fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir})
}
