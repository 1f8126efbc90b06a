package catalina_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]catalina.Version{
		"9.0.117": {9, 0, 117, 0}, "9.0.117.0": {9, 0, 117, 0}, "10.0.0-M5": {10, 0, 0, 5},
		"9.0.0.M9": {9, 0, 0, 9}, "11.0": {11, 0, 0, 0}, "8.5.100": {8, 5, 100, 0},
	} {
		v, err := catalina.ParseVersion(text)
		require.NoError(t, err, text)
		require.Equal(t, want, v, text)
	}
	for _, text := range []string{"", "9", "x.y.z", "9.-1.0", "9.0.99999999999", "@VERSION@"} {
		_, err := catalina.ParseVersion(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "10.0.0-M5", catalina.Version{10, 0, 0, 5}.String())
	require.Empty(t, catalina.Version{}.String())
}

// TestVersionPlaces: what shows an installation's version.
func TestVersionPlaces(t *testing.T) {
	const info, manifest = "org/apache/catalina/util/ServerInfo.properties", "META-INF/MANIFEST.MF"
	tests := map[string]struct {
		home    string
		entries map[string]string
		want    string
	}{
		"ServerInfo":          {"/home", map[string]string{info: "server.number=8.5.100.0\n"}, "8.5.100"},
		"hidden, manifest":    {"/home", map[string]string{info: "server.number=\nserver.info=Nothing\n", manifest: "Implementation-Title: Apache Tomcat\r\nImplementation-Version: 9.0.117\r\n"}, "9.0.117"},
		"hidden, folder":      {"/opt/apache-tomcat-10.1.59", map[string]string{"x": ""}, "10.1.59"},
		"milestone in folder": {"/opt/apache-tomcat-11.0.0-M20/", nil, "11.0.0-M20"},
		"nothing":             {"/opt/tomcat", nil, ""},
		"a bomb":              {"/home", map[string]string{info: strings.Repeat("\n", 30<<20) + "server.number=1.2.3"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, "", map[string]string{"/base/conf/server.xml": "<Server/>"})
			p.set("catalina.home", tt.home)
			if tt.entries != nil {
				p.jar(t, tt.home+"/lib/catalina.jar", tt.entries)
			}
			s, err := catalina.Load(&p.Process)
			require.NoError(t, err)
			require.Equal(t, tt.want, s.Version.String())
			require.Equal(t, tt.want == "", len(s.Unavailable) == 1)
		})
	}
	t.Run("too large a jar", func(t *testing.T) {
		p := newProcess(t, "", map[string]string{"/base/conf/server.xml": "<Server/>", "/home/lib/catalina.jar": strings.Repeat("x", 17<<20)})
		s, err := catalina.Load(&p.Process)
		require.NoError(t, err)
		require.Contains(t, s.Unavailable[0].Why, bounded.ErrTooLarge.Error())
	})
}

// TestHousekeeping: threads with a connector's name that are no workers, as
// counted on real servers (8.5.100, 9.0.117, 10.1.59, 11.0.24) or found in the
// history of NioEndpoint and AbstractProtocol.
func TestHousekeeping(t *testing.T) {
	for _, tt := range []struct {
		version  string
		endpoint string
		cpus     int
		want     int
	}{
		{"8.5.100", "nio", 8, 3},
		{"8.5.75", "nio", 8, 4},
		{"8.5.75", "nio", 1, 3},
		{"8.5.100", "nio2", 8, 1},
		{"9.0.13", "nio", 8, 4},
		{"9.0.14", "nio", 8, 3},
		{"9.0.20", "nio", 8, 4},
		{"9.0.21", "nio", 8, 3},
		{"9.0.46", "nio", 8, 3},
		{"9.0.47", "nio", 8, 2},
		{"9.0.117", "nio", 8, 2},
		{"9.0.117", "nio2", 8, 0},
		{"10.0.0-M1", "nio", 8, 2},
		{"11.0.24", "nio", 8, 2},
		{"7.0.109", "bio", 8, 2},
	} {
		v, err := catalina.ParseVersion(tt.version)
		require.NoError(t, err)
		require.Equal(t, tt.want, catalina.Housekeeping(v, tt.endpoint, tt.cpus), "%+v", tt)
	}
	require.Equal(t, 2, catalina.Housekeeping(catalina.Version{}, "nio", 8), "unknown is taken for new")
}
