package classpath

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestParseManifest(t *testing.T) {
	got := parseManifest("Manifest-Version: 1.0\r\nLong: abc\r\n def\r\n  ghi\r\nNo colon\r\nEmpty:\r\n\r\nName: entry\r\nLong: no\r\n")
	require.Equal(t, map[string]string{"manifest-version": "1.0", "long": "abcdef ghi", "empty": ""}, got)
}

func FuzzParseManifest(f *testing.F) {
	m := mutate.Into(f)
	m.Add("A: b\n c\n\nD: e")
	m.Fuzz(func(t *testing.T, text string) {
		for name := range parseManifest(text) {
			require.NotContains(t, name, ":")
		}
	})
}

func TestArtifact(t *testing.T) {
	for file, want := range map[string][2]string{
		"BOOT-INF/lib/spring-boot-3.5.16.jar":    {"spring-boot", "3.5.16"},
		"spring-boot-2.1.11.RELEASE.jar":         {"spring-boot", "2.1.11.RELEASE"},
		"tomcat-embed-core-11.0.24.jar":          {"tomcat-embed-core", "11.0.24"},
		"spring-boot-4.1.0-SNAPSHOT.jar":         {"spring-boot", "4.1.0-SNAPSHOT"},
		"log4j-1.2-api-2.24.jar":                 {"log4j", "1.2-api-2.24"},
		"tomcat-embed-core.jar":                  {"tomcat-embed-core", ""},
		"-1.jar":                                 {"-1", ""},
		"x/spring-boot-autoconfigure-3.5.16.JAR": {"spring-boot-autoconfigure", "3.5.16"},
	} {
		name, version := artifact(file)
		require.Equal(t, want, [2]string{name, version}, file)
	}
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
