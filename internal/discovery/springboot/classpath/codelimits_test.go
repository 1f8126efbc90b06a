package classpath

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
