package springboot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Code that may set limits is said, wherever the application's classes are.
func TestCustomisers(t *testing.T) {
	classes := map[string]string{
		"x/Web.class":   "\xca\xfe\xba\xbe org/springframework/boot/web/embedded/tomcat/TomcatConnectorCustomizer ()V",
		"x/App.class":   "\xca\xfe\xba\xbe Lorg/springframework/context/annotation/PropertySource; SpringApplication",
		"x/Plain.class": "\xca\xfe\xba\xbe java/lang/Object", "x/note.txt": "TomcatConnectorCustomizer",
	}
	entries := map[string]string{manifestName: "Main-Class: " + loader3 + "JarLauncher\nSpring-Boot-Version: 3.5.16\n"}
	files := map[string]string{"lib/spring-boot-3.5.16.jar": emptyJar(t)}
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
	writeFiles(t, dir, map[string]string{"lib/spring-boot-3.5.16.jar": emptyJar(t)})
	for i := range 30 {
		writeFiles(t, dir, map[string]string{"classes/C" + strings.Repeat("x", i) + ".class": strings.Repeat("y", maxClassFile)})
	}
	require.NoError(t, os.Symlink(".", filepath.Join(dir, "classes", "loop")))
	p := processIn(dir, "java", "-cp", "classes:lib/*", "x.App")
	e, err := Load(p)
	require.NoError(t, err)
	require.Len(t, e.Unavailable(), 1)
	require.Contains(t, e.Unavailable()[0].Why, "more classes than are searched")
}

// Only the limits that a class of Tomcat's customising names are doubted.
func TestCodeLimits(t *testing.T) {
	const coyote = "\xca\xfe\xba\xbe org/apache/coyote/AbstractProtocol TomcatConnectorCustomizer "
	tests := map[string]struct {
		class string
		want  CodeLimits
	}{
		"threads":            {coyote + "setMaxThreads", CodeLimits{MaxThreads: "setMaxThreads in Web"}},
		"an executor":        {coyote + "setExecutor", CodeLimits{MaxThreads: "setExecutor in Web"}},
		"by property":        {coyote + "setProperty maxConnections", CodeLimits{MaxConnections: "maxConnections in Web"}},
		"nothing of limits":  {coyote + "setCompression", CodeLimits{}},
		"a connection pool":  {"\xca\xfe\xba\xbe com/zaxxer/hikari setMaxConnections setMaxThreads", CodeLimits{}},
		"its own connector":  {"\xca\xfe\xba\xbe org/apache/coyote/AbstractProtocol addAdditionalTomcatConnectors setMaxThreads", CodeLimits{}},
		"default properties": {"\xca\xfe\xba\xbe setDefaultProperties", CodeLimits{Defaults: "setDefaultProperties in Web"}},
		"any rank":           {"\xca\xfe\xba\xbe EnvironmentPostProcessor", CodeLimits{Any: "EnvironmentPostProcessor in Web"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got CodeLimits
			got.read("Web", []byte(tt.class))
			require.Equal(t, tt.want, got)
		})
	}
}
