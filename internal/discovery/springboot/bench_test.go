package springboot

import (
	"archive/zip"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

// fatJar writes an executable jar like that of a real application: 60
// libraries of 250 entries, 25 MB, and 150 classes of its own.
func fatJar(t testing.TB, file string) {
	library := map[string]string{}
	for i := range 250 {
		library[fmt.Sprintf("org/example/library/package%d/SomeClassOfALibrary%d.class", i%10, i)] = strings.Repeat("x", 1600)
	}
	jar := string(jvmtest.ZipOf(t, zip.Store, library))
	entries := map[string]string{
		jvmtest.Manifest: "Main-Class: " + loader3 + "JarLauncher\nSpring-Boot-Version: 3.5.16\n",
		"BOOT-INF/classes/application.yml": "server:\n  port: ${PORT:8080}\n  tomcat.accept-count: 50\n---\n" +
			"spring.config.activate.on-profile: prod\nserver.tomcat.threads.max: 20\n",
		"BOOT-INF/lib/tomcat-embed-core-10.1.55.jar": jar,
	}
	for i := range 59 {
		entries[fmt.Sprintf("BOOT-INF/lib/library%d-1.0.jar", i)] = jar
	}
	for i := range 150 {
		entries[fmt.Sprintf("BOOT-INF/classes/com/example/C%d.class", i)] = strings.Repeat("com/example", 500)
	}
	jvmtest.WriteZip(t, file, slices.Sorted(maps.Keys(entries)), entries)
}

// BenchmarkLoad is the discovery of one application from its 25 MB fat jar.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	fatJar(b, filepath.Join(dir, "app.jar"))
	p := processIn(dir, "java", "-jar", "app.jar", "--spring.profiles.active=prod")
	b.ReportAllocs()
	for b.Loop() {
		e, err := Load(p)
		require.NoError(b, err)
		require.Equal(b, 20, e.Settings().MaxThreads.Value)
	}
}

// BenchmarkDetect reads the central directory only.
func BenchmarkDetect(b *testing.B) {
	dir := b.TempDir()
	fatJar(b, filepath.Join(dir, "app.jar"))
	p := processIn(dir, "java", "-jar", "app.jar")
	for b.Loop() {
		_, ok := detectedIn(p)
		require.True(b, ok)
	}
}
