package properties

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestUniform(t *testing.T) {
	const want = "server.tomcat.acceptcount"
	for _, name := range []string{
		"server.tomcat.accept-count", "server.tomcat.acceptCount", "server.tomcat.accept_count",
		"SERVER.TOMCAT.ACCEPT-COUNT", "Server.Tomcat.AcceptCount",
	} {
		require.Equal(t, want, Uniform(name), name)
	}
	require.Equal(t, "spring.profiles.active[12]", Uniform("spring.profiles.active[12]"))
	require.Equal(t, "a.b.xy.c", Uniform("a.B[X-y].c"))
	require.Equal(t, "server.port", Uniform("\u00ef\u00bb\u00bfserver.port"), "a byte order mark read as ISO 8859-1")
}

func TestUniformEnv(t *testing.T) {
	for name, want := range map[string]string{
		"SERVER_PORT":                 "server.port",
		"SERVER_TOMCAT_ACCEPTCOUNT":   "server.tomcat.acceptcount",
		"SERVER_TOMCAT_ACCEPT_COUNT":  "server.tomcat.accept.count",
		"SPRING_PROFILES_ACTIVE_0":    "spring.profiles.active[0]",
		"SPRING_PROFILES_ACTIVE_0_":   "spring.profiles.active[0]",
		"SPRING_PROFILES_GROUP_A_1_2": "spring.profiles.group.a[1][2]",
		"_":                           "",
		"server.tomcat.acceptCount":   "server.tomcat.acceptcount",
	} {
		require.Equal(t, want, UniformEnv(name), name)
	}
}

func TestEnvNames(t *testing.T) {
	require.Equal(t, []string{
		"SERVER_TOMCAT_ACCEPTCOUNT", "SERVER_TOMCAT_ACCEPT_COUNT", "server_tomcat_acceptcount", "server_tomcat_accept_count",
	}, envNames("server.tomcat.accept-count"))
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]bool{
		"server.port": true, "a": true, "my-app.x[0].y": true, "1a": true,
		"": false, "APP_PORT": false, "acceptCount": false, ".a": false, "a.": false, "a..b": false, "-a": false, "a b": false,
	} {
		require.Equal(t, want, Canonical(name), name)
	}
}

// Whatever the spelling, a property put under a name is found under its
// canonical form, in a file as in the environment.
func FuzzNames(f *testing.F) {
	m := mutate.Into(f)
	m.Add("server.tomcat.accept-count")
	m.Add("a[0].b")
	m.Fuzz(func(t *testing.T, name string) {
		require.Equal(t, Uniform(name), Uniform(Uniform(name)))
		_ = UniformEnv(name)
		if !Canonical(name) || strings.ContainsAny(name, "[]") || len(name) > maxKey {
			return
		}
		file := New(model.SourceFile, "f", NewQuota())
		file.Put(strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "1")
		_, ok := file.find(name)
		require.True(t, ok)
		for _, variable := range envNames(name) {
			env := New(model.SourceEnv, "e", NewQuota())
			env.Env = true
			env.Put(variable, "1")
			_, ok = env.find(name)
			require.True(t, ok, variable)
		}
	})
}
