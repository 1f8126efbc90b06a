package springboot

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

// What Spring Boot's starters bring (spring-boot-starter-reactor-netty: reactor-netty
// until 2.3, reactor-netty-http since 2.4), and servers that it knows nothing of.
func TestServer(t *testing.T) {
	jar := jvmtest.EmptyJar(t)
	fat := func(boot string, libs ...string) layout {
		entries := map[string]string{jvmtest.Manifest: "Main-Class: " + loader2 + "JarLauncher\nSpring-Boot-Version: " + boot + "\n"}
		for _, lib := range libs {
			entries["BOOT-INF/lib/"+lib+".jar"] = jar
		}
		return layout{args: []string{"java", "-jar", "app.jar"}, jars: map[string]map[string]string{"app.jar": entries}}
	}
	merged := func(entries ...string) layout {
		all := map[string]string{jvmtest.Manifest: "Main-Class: com.example.Main\n", "org/springframework/boot/SpringApplication.class": ""}
		for _, name := range entries {
			all[name] = "server.number=10.1.55.0\n"
		}
		return layout{args: []string{"java", "-jar", "all.jar"}, jars: map[string]map[string]string{"all.jar": all}}
	}
	tests := map[string]struct {
		layout
		want string
	}{
		"Tomcat":                         {fat("3.5.16", "spring-boot-3.5.16", "tomcat-embed-core-10.1.55", "reactor-netty-http-1.2.9"), "tomcat"},
		"Jetty":                          {fat("3.5.16", "spring-boot-3.5.16", "jetty-server-12.0.22"), "jetty"},
		"Undertow":                       {fat("3.5.16", "spring-boot-3.5.16", "undertow-core-2.3.18.Final"), "undertow"},
		"Netty since 2.4":                {fat("2.4.0", "spring-boot-2.4.0", "reactor-netty-http-1.0.1"), "netty"},
		"Netty until 2.3":                {fat("2.3.12.RELEASE", "spring-boot-2.3.12.RELEASE", "reactor-netty-0.9.20.RELEASE"), "netty"},
		"Armeria":                        {fat("3.5.16", "spring-boot-3.5.16", "armeria-1.32.0"), "other"},
		"no server":                      {fat("3.5.16", "spring-boot-3.5.16"), "other"},
		"everything merged, with Tomcat": {merged("org/apache/catalina/util/ServerInfo.properties"), "tomcat"},
		"everything merged, without":     {merged(), "other"},
		"libraries that are elsewhere":   {fat("3.5.16"), ""},
		"argument file unread": {
			layout{args: []string{"java", "@gone", "-cp", "libs/*", "com.example.Main"}, files: map[string]string{"libs/spring-boot-3.5.16.jar": jar}},
			"",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Load(tt.process(t))
			require.NoError(t, err)
			require.Equal(t, tt.want, e.Server())
		})
	}
}

// A folder of the class path that cannot be listed may hold a Tomcat.
func TestServerUnlisted(t *testing.T) {
	l := layout{args: []string{"java", "-cp", "libs/*:more/*", "com.example.Main"}, files: map[string]string{"libs/spring-boot-3.5.16.jar": jvmtest.EmptyJar(t)}}
	p := l.process(t)
	list := p.ReadDir
	p.ReadDir = func(path string) ([]fs.DirEntry, error) {
		if path == "more" {
			return nil, fs.ErrPermission
		}
		return list(path)
	}
	e, err := Load(p)
	require.NoError(t, err)
	require.Empty(t, e.Server())
}
