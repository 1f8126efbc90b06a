package catalina_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const threadsFromX = `<Connector port="8080" maxThreads="${x}" minSpareThreads="1"/>`

func TestSubstitution(t *testing.T) {
	env := func(p *process) {
		p.set("org.apache.tomcat.util.digester.PROPERTY_SOURCE", "org.apache.tomcat.util.digester.EnvironmentPropertySource")
		p.Env = map[string]string{"x": "77"}
	}
	tests := map[string]struct {
		version, text string
		want          int
		kind          model.SourceKind
		change        []func(*process)
	}{
		"-D":                               {"9.0.117", "${x}", 5, model.SourceProperty, []func(*process){property("x", "5")}},
		"catalina.properties":              {"9.0.117", "${x}", 6, model.SourceFile, []func(*process){propertiesFile("# c\n x : 6")}},
		"catalina.properties beats -D":     {"9.0.117", "${x}", 6, model.SourceFile, []func(*process){property("x", "5"), propertiesFile("x=6")}},
		"environment":                      {"9.0.117", "${x}", 77, model.SourceEnv, []func(*process){env}},
		"environment before properties":    {"9.0.117", "${x}", 77, model.SourceEnv, []func(*process){env, property("x", "5")}},
		"no environment unless asked for":  {"9.0.117", "${x}", 200, model.SourceDefault, []func(*process){func(p *process) { p.Env = map[string]string{"x": "77"} }}},
		"default":                          {"9.0.117", "${x:-8}", 8, model.SourceFile, nil},
		"default not needed":               {"9.0.117", "${x:-8}", 5, model.SourceProperty, []func(*process){property("x", "5")}},
		"the whole is a name first":        {"9.0.117", "${x:-8}", 3, model.SourceProperty, []func(*process){property("x:-8", "3")}},
		"no defaults before 9.0.35":        {"9.0.34", "${x:-8}", 200, model.SourceDefault, nil},
		"no defaults before 8.5.55":        {"8.5.54", "${x:-8}", 200, model.SourceDefault, nil},
		"parts":                            {"9.0.117", "${x}0", 50, model.SourceProperty, []func(*process){property("x", "5")}},
		"two":                              {"9.0.117", "${x}${y}", 56, model.SourceProperty, []func(*process){property("x", "5"), property("y", "6")}},
		"nested in 10.1":                   {"10.1.59", "${x:-${y}}", 6, model.SourceProperty, []func(*process){property("y", "6")}},
		"not nested in 9.0":                {"9.0.117", "${x:-${y}}", 200, model.SourceDefault, []func(*process){property("y", "6")}},
		"a value refers on in 10.1":        {"10.1.59", "${x}", 6, model.SourceProperty, []func(*process){property("x", "${y}"), property("y", "6")}},
		"a value does not refer on in 9.0": {"9.0.117", "${x}", 200, model.SourceDefault, []func(*process){property("x", "${y}"), property("y", "6")}},
		"in a circle":                      {"10.1.59", "${x}", 200, model.SourceDefault, []func(*process){property("x", "${y}"), property("y", "${x}")}},
		"growing":                          {"10.1.59", "${x}", 200, model.SourceDefault, []func(*process){property("x", "${x}${x}${x}${x}")}},
		"unknown":                          {"9.0.117", "${x}", 200, model.SourceDefault, nil},
		"open":                             {"9.0.117", "${x", 200, model.SourceDefault, nil},
		"a dollar":                         {"9.0.117", "$7", 200, model.SourceDefault, nil},
		"system properties replaced": {"9.0.117", "${y}", 77, model.SourceEnv, []func(*process){
			env, property("y", "${x}"), property("org.apache.tomcat.util.digester.REPLACE_SYSTEM_PROPERTIES", "true"),
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := connector(t, tt.version, strings.Replace(threadsFromX, "${x}", tt.text, 1), tt.change...)
			require.Equal(t, tt.want, c.MaxThreads.Value, "%+v", c.MaxThreads)
			require.Equal(t, tt.kind, c.MaxThreads.Kind)
			if tt.kind == model.SourceDefault {
				require.Contains(t, c.MaxThreads.Note, "is not a whole number")
			}
		})
	}
}

// TestBlindSubstitution: where a source cannot be asked, what depends on it is
// left out, and nothing else.
func TestBlindSubstitution(t *testing.T) {
	for source, what := range map[string]string{
		"com.example.Vault": "PROPERTY_SOURCE",
		"org.apache.tomcat.util.digester.EnvironmentPropertySource": "values with ${…} in conf/server.xml",
	} {
		const server = `<Server><Service><Executor name="x" maxThreads="${x}"/>
			<Connector port="${x}" maxThreads="${x}" minSpareThreads="3" maxConnections="${x:-5}" acceptCount="${x}"
				connectionTimeout="${x}" useVirtualThreads="${x}" maxKeepAliveRequests="6"/>
			<Connector port="8081" executor="x" connectionTimeout="7" protocol="org.apache.coyote.http11.Http11Protocol"/>
			<Connector port="8082" keepAliveTimeout="${x}"/>
			</Service></Server>`
		s, err := load(t, "10.1.59", server, func(p *process) {
			p.set("org.apache.tomcat.util.digester.PROPERTY_SOURCE", source)
			p.set("x", "9")
		})
		require.NoError(t, err)
		require.Len(t, s.Unavailable, 1)
		require.Contains(t, s.Unavailable[0].What, what)
		require.Len(t, s.Connectors, 3)
		c := s.Connectors[0]
		require.Zero(t, c.Port)
		for _, setting := range []*model.Setting[int]{c.MaxThreads, c.MaxConnections, c.AcceptCount, s.Connectors[1].MaxThreads} {
			require.Nil(t, setting)
		}
		require.Nil(t, c.ConnectionTimeout)
		require.Nil(t, c.KeepAliveTimeout)
		require.Nil(t, c.VirtualThreads)
		require.Equal(t, 3, c.MinSpareThreads.Value)
		require.Equal(t, 6, c.MaxKeepAliveRequests.Value)
		require.Equal(t, 25, s.Connectors[1].MinSpareThreads.Value)
		require.Nil(t, s.Connectors[2].KeepAliveTimeout)
		require.Equal(t, time.Minute, s.Connectors[2].ConnectionTimeout.Value)
	}
}

// TestPlaces: where the files of an instance are found.
func TestPlaces(t *testing.T) {
	server := func(port string) string {
		return `<Server><Service><Connector port="` + port + `"/></Service></Server>`
	}
	files := map[string]string{
		"/base/conf/server.xml":           server("1"),
		"/home/conf/server.xml":           server("2"),
		"/etc/other.xml":                  server("3"),
		"/base/conf/alt.xml":              server("4"),
		"/cwd/conf/server.xml":            server("5"),
		"/base/conf/catalina.properties":  "p=11",
		"/base/conf/other.properties":     "p=12",
		"/etc/elsewhere.properties":       "p=13",
		"/base/conf/from-properties.xml":  server("${p}"),
		"/base/conf/catalina.jar-missing": "",
	}
	tests := map[string]struct {
		args       []string
		properties map[string]string
		port       uint16
		file       string
	}{
		"base":                     {nil, nil, 1, "conf/server.xml"},
		"home when there is none":  {nil, map[string]string{"catalina.base": ""}, 2, "conf/server.xml"},
		"neither":                  {nil, map[string]string{"catalina.base": "", "catalina.home": ""}, 5, "conf/server.xml"},
		"-config absolute":         {[]string{"-config", "/etc/other.xml", "start"}, nil, 3, "/etc/other.xml"},
		"-config in the base":      {[]string{"start", "-config", "conf/alt.xml"}, nil, 4, "conf/alt.xml"},
		"-config without a file":   {[]string{"-config"}, nil, 1, "conf/server.xml"},
		"catalina.properties":      {[]string{"-config", "conf/from-properties.xml"}, nil, 11, "conf/from-properties.xml"},
		"catalina.config, a name":  {[]string{"-config", "conf/from-properties.xml"}, map[string]string{"catalina.config": "other.properties"}, 12, "conf/from-properties.xml"},
		"catalina.config, a URL":   {[]string{"-config", "conf/from-properties.xml"}, map[string]string{"catalina.config": "file:///etc/elsewhere.properties"}, 13, "conf/from-properties.xml"},
		"catalina.config, far off": {[]string{"-config", "conf/from-properties.xml"}, map[string]string{"catalina.config": "http://h/x"}, 11, "conf/from-properties.xml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, "9.0.120", files)
			p.Args = tt.args
			for name, text := range tt.properties {
				p.set(name, text)
			}
			s, err := catalina.Load(&p.Process)
			require.NoError(t, err)
			require.Equal(t, tt.file, s.File)
			require.Len(t, s.Connectors, 1)
			require.Equal(t, tt.port, s.Connectors[0].Port)
		})
	}
}

func TestBootstrapFolder(t *testing.T) {
	p := newProcess(t, "", map[string]string{
		"/cwd/bootstrap.jar":   "",
		"/conf/server.xml":     `<Server><Service><Connector port="6"/></Service></Server>`,
		"/cwd/conf/server.xml": `<Server/>`,
	})
	p.set("catalina.base", "")
	p.set("catalina.home", "")
	s, err := catalina.Load(&p.Process)
	require.NoError(t, err)
	require.Len(t, s.Connectors, 1, "the working directory is bin of an installation")
}

func TestGeneratedCode(t *testing.T) {
	p := newProcess(t, "9.0.117", map[string]string{"/base/conf/server.xml": "<Server/>"})
	p.Args = []string{"-useGeneratedCode", "start"}
	_, err := catalina.Load(&p.Process)
	require.ErrorIs(t, err, catalina.ErrGenerated)
}

func TestSeveralServices(t *testing.T) {
	s, err := load(t, "10.1.59", `<?xml version="1.0"?>
<Server port="8005" portOffset="1">
  <Service name="a">
    <Executor name="x" maxThreads="5"/>
    <Connector port="1" executor="x"/>
    <Connector port="2"/>
  </Service>
  <Service name="b">
    <Connector port="3" executor="x"/>
    <Engine><Connector port="99"/></Engine>
  </Service>
  <Connector port="98"/>
</Server>`)
	require.NoError(t, err)
	ports := make([]uint16, 0, 3)
	for _, c := range s.Connectors {
		ports = append(ports, c.Port)
	}
	require.Equal(t, []uint16{2, 3, 4}, ports)
	require.Equal(t, "x", s.Connectors[0].Executor)
	require.Empty(t, s.Connectors[2].Executor, "an executor belongs to its service")
}

// A value that grows in each of very many places, and connectors without end:
// what is beyond the bound is said, and the rest is there.
func TestManyConnectors(t *testing.T) {
	s, err := load(t, "10.1.59", `<Server><Service>`+strings.Repeat(`<Connector port="8080" maxThreads="${x}${x}${x}${x}${x}${x}"/>`, 3_000)+`</Service></Server>`, func(p *process) {
		p.set("x", strings.Repeat("${x}", 1000))
	})
	require.NoError(t, err)
	require.Len(t, s.Connectors, 256)
	require.Equal(t, []model.Unavailable{
		{What: "values with ${…} in conf/server.xml", Why: "they grow beyond what is read"},
		{What: "connectors of conf/server.xml", Why: "more than 256 connectors and executors"},
	}, s.Unavailable)
}
