package springboot

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// Each source is named so that a person finds the line to change.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	p := jarLayout(t, dir, "3.5.16", binderCase{
		Files: map[string]string{
			"classpath:application.yml":             "server.port: 1\n---\nspring.config.activate.on-profile: prod | live\nserver.address: x\n",
			"classpath:config/application-prod.yml": "server.tomcat.accept-count: 2\n",
			"config/application.properties":         "server.tomcat.max-connections=3\n",
			"opts":                                  "-Dserver.ssl.enabled=false",
			"tree/server/http2/enabled":             "true\n",
		},
		Env:  map[string]string{"SERVER_TOMCAT_THREADS_MAX": "4", "JAVA_TOOL_OPTIONS": "-Dserver.tomcat.threads.min-spare=5", "SPRING_APPLICATION_JSON": `{"server.tomcat.keep-alive-timeout":"6s"}`},
		VM:   []string{"@opts", "-Dserver.tomcat.connectionTimeout=7s"},
		Args: []string{"--spring.profiles.active=prod", "--server.tomcat.maxKeepAliveRequests=8", "--spring.config.import=configtree:tree/"},
	})
	e, err := Load(p)
	require.NoError(t, err)
	require.Empty(t, e.Unavailable())
	for name, want := range map[string]Value{
		"server.port":                           {Text: "1", Kind: model.SourceFile, Source: "application.yml in app.jar"},
		"server.address":                        {Text: "x", Kind: model.SourceFile, Source: "application.yml in app.jar, profile prod | live"},
		"server.tomcat.accept-count":            {Text: "2", Kind: model.SourceFile, Source: "config/application-prod.yml in app.jar"},
		"server.tomcat.max-connections":         {Text: "3", Kind: model.SourceFile, Source: "config/application.properties"},
		"server.tomcat.threads.max":             {Text: "4", Kind: model.SourceEnv, Source: "env SERVER_TOMCAT_THREADS_MAX"},
		"server.tomcat.threads.min-spare":       {Text: "5", Kind: model.SourceProperty, Source: "-Dserver.tomcat.threads.min-spare in JAVA_TOOL_OPTIONS"},
		"server.tomcat.keep-alive-timeout":      {Text: "6s", Kind: model.SourceEnv, Source: "SPRING_APPLICATION_JSON"},
		"server.tomcat.connection-timeout":      {Text: "7s", Kind: model.SourceProperty, Source: "-Dserver.tomcat.connectionTimeout"},
		"server.tomcat.max-keep-alive-requests": {Text: "8", Kind: model.SourceArgument, Source: "argument --server.tomcat.maxKeepAliveRequests"},
		"server.ssl.enabled":                    {Text: "false", Kind: model.SourceProperty, Source: "-Dserver.ssl.enabled in @opts"},
		"server.http2.enabled":                  {Text: "true", Kind: model.SourceFile, Source: "config tree tree"},
	} {
		got, ok, err := e.Get(name)
		require.NoError(t, err)
		require.True(t, ok, name)
		require.Equal(t, want, got, name)
	}
}

// What lies on another machine is said, not guessed; the rest still counts.
func TestRemoteImports(t *testing.T) {
	for location, what := range map[string]string{
		"configserver:http://config:8888":     "settings imported from configserver:http://config:8888",
		"optional:configserver:":              "settings imported from optional:configserver:",
		"vault://secret/app":                  "settings imported from vault://secret/app",
		"optional:consul:":                    "settings imported from optional:consul:",
		"https://example.com/application.yml": "settings imported from https://example.com/application.yml",
		"aws-parameterstore:/config/app":      "settings imported from aws-parameterstore:/config/app",
		"optional:kubernetes:":                "settings imported from optional:kubernetes:",
		"file:none.yml":                       "config file file:none.yml",
		"file:/etc/limits.conf":               "config location file:/etc/limits.conf",
	} {
		p := jarLayout(t, t.TempDir(), "3.5.16", binderCase{Files: map[string]string{
			"classpath:application.yml": "server.port: 1\nspring.config.import: '" + location + "'\n",
		}})
		e, err := Load(p)
		require.NoError(t, err)
		require.Len(t, e.Unavailable(), 1, location)
		require.Equal(t, what, e.Unavailable()[0].What)
		v, _, err := e.Get("server.port")
		require.NoError(t, err)
		require.Equal(t, "1", v.Text)
	}
}

func TestBootstrapContext(t *testing.T) {
	dir := t.TempDir()
	jar := jvmtest.EmptyJar(t)
	entries := map[string]string{
		jvmtest.Manifest: "Main-Class: " + loader2 + "JarLauncher\nSpring-Boot-Version: 2.7.18\n",
		"BOOT-INF/lib/spring-cloud-starter-bootstrap-3.1.9.jar": jar, "BOOT-INF/lib/jetty-server-9.4.53.v20231009.jar": jar,
	}
	jvmtest.WriteZip(t, filepath.Join(dir, "app.jar"), slices.Sorted(maps.Keys(entries)), entries)
	p := processIn(dir, "java", "-jar", "app.jar")
	e, err := Load(p)
	require.NoError(t, err)
	require.Equal(t, "jetty", e.Server())
	require.Len(t, e.Unavailable(), 1)
	require.Contains(t, e.Unavailable()[0].What, "bootstrap context")
}

func TestMalformedJSON(t *testing.T) {
	p := jarLayout(t, t.TempDir(), "3.5.16", binderCase{Env: map[string]string{"SPRING_APPLICATION_JSON": "{", "SERVER_PORT": "2"}})
	e, err := Load(p)
	require.NoError(t, err)
	require.Equal(t, "SPRING_APPLICATION_JSON", e.Unavailable()[0].What)
	v, _, _ := e.Get("server.port")
	require.Equal(t, "2", v.Text)
}

func TestJavaVersion(t *testing.T) {
	dir := t.TempDir()
	jvmtest.WriteFiles(t, dir, map[string]string{"jdk/release": "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"21.0.8\"\n"})
	p := processIn(dir, "jdk/bin/java")
	require.Equal(t, "21.0.8", launch.JavaVersion(&p))
	p.JavaVersion = "25"
	require.Equal(t, "25", launch.JavaVersion(&p))
	p = processIn(dir, "java")
	require.Empty(t, launch.JavaVersion(&p))
	p.Exe = filepath.Join(dir, "jdk/jre/bin/java")
	require.Equal(t, "21.0.8", launch.JavaVersion(&p))
}

// A file is read once, whatever the number of times it is asked for.
func TestFilesAreReadOnce(t *testing.T) {
	p := jarLayout(t, t.TempDir(), "3.5.16", binderCase{
		Files: map[string]string{"application.yml": "server.port: 1\nspring.config.import: application.yml\n", "application-a.yml": "x: 1\n"},
		Args:  []string{"--spring.profiles.active=a"},
	})
	opened, open := map[string]int{}, p.Open
	p.Open = func(path string) (*os.File, error) { opened[path]++; return open(path) }
	_, err := Load(p)
	require.NoError(t, err)
	for path, n := range opened {
		require.LessOrEqual(t, n, 2, path)
	}
}

// FuzzLoad runs whole applications of hostile files and variables.
func FuzzLoad(f *testing.F) {
	m := mutate.Into(f)
	m.Rarely()
	m.Add("server.port=1\n#---\nspring.config.import=b.yml", "server: {port: ${a}}\n---\nspring.config.activate.on-profile: x", "{\"a\":\"${b}\"}", "--spring.profiles.active=x,${y}")
	m.Fuzz(func(t *testing.T, props, yml, json, arg string) {
		for _, boot := range []string{"3.5.16", "2.3.12.RELEASE"} {
			p := classPathLayout(t, t.TempDir(), boot, binderCase{
				Files: map[string]string{"application.properties": props, "b.yml": yml, "classpath:application.yaml": yml},
				Env:   map[string]string{"SPRING_APPLICATION_JSON": json, "JAVA_TOOL_OPTIONS": arg},
				Args:  []string{arg, "--" + arg},
			})
			e, err := Load(p)
			require.NoError(t, err)
			_ = e.Settings()
		}
	})
}
