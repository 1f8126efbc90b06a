package springboot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

// Code that may set limits is said, wherever the application's classes are.
func TestCustomisers(t *testing.T) {
	classes := map[string]string{
		"x/Web.class":   "\xca\xfe\xba\xbe org/springframework/boot/web/embedded/tomcat/TomcatConnectorCustomizer ()V",
		"x/App.class":   "\xca\xfe\xba\xbe Lorg/springframework/context/annotation/PropertySource; SpringApplication",
		"x/Plain.class": "\xca\xfe\xba\xbe java/lang/Object", "x/note.txt": "TomcatConnectorCustomizer",
	}
	entries := map[string]string{jvmtest.Manifest: "Main-Class: " + loader3 + "JarLauncher\nSpring-Boot-Version: 3.5.16\n"}
	files := map[string]string{"lib/spring-boot-3.5.16.jar": jvmtest.EmptyJar(t)}
	for name, data := range classes {
		entries["BOOT-INF/classes/"+name] = data
		files["classes/"+name] = data
	}
	tests := map[string]layout{
		"jar":        {args: []string{"java", "-jar", "app.jar"}, jars: map[string]map[string]string{"app.jar": entries}},
		"class path": {args: []string{"java", "-cp", "classes:lib/*", "x.App"}, files: files},
	}
	for name, l := range tests {
		t.Run(name, func(t *testing.T) {
			p := l.process(t)
			p.EnvKnown = true
			e, err := Load(p)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{
				"code that customises the web server (TomcatConnectorCustomizer in Web): it runs inside the application and may set other limits than the configuration",
				"files named by @PropertySource (PropertySource in App): they apply where no other source has the property",
			}, whats(e.Unavailable()))
		})
	}
}

// The search ends: at a number of bytes, at links that lead in a circle.
func TestCustomisersBounded(t *testing.T) {
	dir := t.TempDir()
	jvmtest.WriteFiles(t, dir, map[string]string{"lib/spring-boot-3.5.16.jar": jvmtest.EmptyJar(t)})
	for i := range 30 {
		jvmtest.WriteFiles(t, dir, map[string]string{"classes/C" + strings.Repeat("x", i) + ".class": strings.Repeat("y", 256<<10)})
	}
	require.NoError(t, os.Symlink(".", filepath.Join(dir, "classes", "loop")))
	p := processIn(dir, "java", "-cp", "classes:lib/*", "x.App")
	e, err := Load(p)
	require.NoError(t, err)
	require.Len(t, e.Unavailable(), 1)
	require.Contains(t, e.Unavailable()[0].Why, "more classes than are searched")
}
