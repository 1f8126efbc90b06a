package springboot

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

const (
	loader2 = "org.springframework.boot.loader."
	loader3 = "org.springframework.boot.loader.launch."
)

// layout is an application on disk: plain files, and jars of entries.
type layout struct {
	files map[string]string
	jars  map[string]map[string]string
	args  []string
	env   map[string]string
}

func (l layout) process(t *testing.T) launch.Process {
	dir := t.TempDir()
	jvmtest.WriteFiles(t, dir, l.files)
	for name, entries := range l.jars {
		jvmtest.WriteZip(t, filepath.Join(dir, name), slices.Sorted(maps.Keys(entries)), entries)
	}
	p := processIn(dir, l.args...)
	p.Env = l.env
	return p
}

func TestDetect(t *testing.T) {
	jar := jvmtest.EmptyJar(t)
	tests := map[string]struct {
		layout
		kind         classpath.Kind
		boot, tomcat string
		port         string // found in a file of the application
	}{
		"executable jar, Spring Boot 2": {
			layout: layout{args: []string{"java", "-jar", "app.jar"}, jars: map[string]map[string]string{"app.jar": {
				jvmtest.Manifest:                            "Main-Class: " + loader2 + "JarLauncher\nSpring-Boot-Version: 2.1.11.RELEASE\n",
				"BOOT-INF/classes/application.yml":          "server.port: 1",
				"BOOT-INF/lib/tomcat-embed-core-9.0.29.jar": jar,
			}}},
			kind: classpath.KindJar, boot: "2.1.11.RELEASE", tomcat: "9.0.29", port: "1",
		},
		"executable jar, Spring Boot 4, without its version": {
			layout: layout{args: []string{"/opt/jdk/bin/java", "-jar", "app.jar"}, jars: map[string]map[string]string{"app.jar": {
				jvmtest.Manifest:                        "Main-Class: " + loader3 + "JarLauncher\nSpring-Boot-Classes: CLASSES/\nSpring-Boot-Lib: LIBS/\n",
				"CLASSES/config/application.properties": "server.port=2",
				"LIBS/spring-boot-4.0.9.jar":            jar, "LIBS/spring-boot-tomcat-4.0.9.jar": jar, "LIBS/tomcat-embed-core-11.0.27.jar": jar,
			}}},
			kind: classpath.KindJar, boot: "4.0.9", tomcat: "11.0.27", port: "2",
		},
		"Spring Boot 1.3": {
			layout: layout{args: []string{"java", "-jar", "app.jar"}, jars: map[string]map[string]string{"app.jar": {
				jvmtest.Manifest:         "Main-Class: " + loader2 + "JarLauncher\nSpring-Boot-Version: 1.3.8.RELEASE\n",
				"application.properties": "server.port=3", "lib/tomcat-embed-core-8.0.37.jar": jar,
			}}},
			kind: classpath.KindJar, boot: "1.3.8.RELEASE", tomcat: "8.0.37", port: "3",
		},
		"executable war": {
			layout: layout{args: []string{"java", "-jar", "app.war"}, jars: map[string]map[string]string{"app.war": {
				jvmtest.Manifest:                                     "Main-Class: " + loader3 + "WarLauncher\nSpring-Boot-Version: 3.5.16\nSpring-Boot-Classes: WEB-INF/classes/\nSpring-Boot-Lib: WEB-INF/lib/\n",
				"WEB-INF/classes/application.yml":                    "server.port: 4",
				"WEB-INF/lib-provided/tomcat-embed-core-10.1.55.jar": jar,
			}}},
			kind: classpath.KindWar, boot: "3.5.16", tomcat: "10.1.55", port: "4",
		},
		"exploded jar": {
			layout: layout{args: []string{"java", loader3 + "JarLauncher"}, files: map[string]string{
				jvmtest.Manifest:                             "Main-Class: " + loader3 + "JarLauncher\nSpring-Boot-Version: 3.5.16\n",
				"BOOT-INF/classes/application.yml":           "server.port: 5",
				"BOOT-INF/lib/tomcat-embed-core-10.1.55.jar": jar,
			}},
			kind: classpath.KindExploded, boot: "3.5.16", tomcat: "10.1.55", port: "5",
		},
		"exploded jar elsewhere": {
			layout: layout{args: []string{"java", "-cp", "workspace", loader2 + "JarLauncher"}, files: map[string]string{
				"workspace/" + jvmtest.Manifest:                       "Spring-Boot-Version: 2.7.18\n",
				"workspace/BOOT-INF/classes/application.yml":          "server.port: 6",
				"workspace/BOOT-INF/lib/tomcat-embed-core-9.0.83.jar": jar,
			}},
			kind: classpath.KindExploded, boot: "2.7.18", tomcat: "9.0.83", port: "6",
		},
		"exploded war": {
			layout: layout{args: []string{"java", loader2 + "WarLauncher"}, files: map[string]string{
				jvmtest.Manifest:                           "Spring-Boot-Version: 2.7.18\n",
				"WEB-INF/classes/application.yml":          "server.port: 7",
				"WEB-INF/lib/tomcat-embed-core-9.0.83.jar": jar,
			}},
			kind: classpath.KindExploded, boot: "2.7.18", tomcat: "9.0.83", port: "7",
		},
		"a launcher with the jar in the class path": {
			layout: layout{args: []string{"java", "-cp", "app.jar", loader3 + "JarLauncher"}, jars: map[string]map[string]string{"app.jar": {
				jvmtest.Manifest:                   "Main-Class: " + loader3 + "JarLauncher\nSpring-Boot-Version: 3.5.16\n",
				"BOOT-INF/classes/application.yml": "server.port: 8", "BOOT-INF/lib/tomcat-embed-core-10.1.55.jar": jar,
			}}},
			kind: classpath.KindJar, boot: "3.5.16", tomcat: "10.1.55", port: "8",
		},
		"class path with a wildcard": {
			layout: layout{args: []string{"java", "-cp", "classes:lib/*", "com.example.Main"}, files: map[string]string{
				"classes/application.yml": "server.port: 9", "lib/spring-boot-3.5.16.jar": jar, "lib/tomcat-embed-core-10.1.55.jar": jar,
			}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "9",
		},
		"class path in an argument file": {
			layout: layout{args: []string{"java", "@cp", "com.example.Main"}, files: map[string]string{
				"cp": "-cp res:lib/spring-boot-3.5.16.jar:lib/tomcat-embed-core-10.1.55.jar", "res/application.yml": "server.port: 10",
				"lib/spring-boot-3.5.16.jar": jar, "lib/tomcat-embed-core-10.1.55.jar": jar,
			}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "10",
		},
		"class path in an argument file of its own": {
			layout: layout{args: []string{"java", "-cp", "@cp", "com.example.Main"}, files: map[string]string{
				"cp": "res:lib/spring-boot-3.5.16.jar:lib/tomcat-embed-core-10.1.55.jar", "res/application.yml": "server.port: 19",
				"lib/spring-boot-3.5.16.jar": jar, "lib/tomcat-embed-core-10.1.55.jar": jar,
			}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "19",
		},
		"class path of the environment": {
			layout: layout{args: []string{"java", "com.example.Main"}, env: map[string]string{"CLASSPATH": "lib/spring-boot-3.5.16.jar:lib/tomcat-embed-core-10.1.55.jar:."}, files: map[string]string{
				"config/application.yml": "server.port: 11", "lib/spring-boot-3.5.16.jar": jar, "lib/tomcat-embed-core-10.1.55.jar": jar,
			}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "11",
		},
		"extracted with jarmode": {
			layout: layout{args: []string{"java", "-jar", "app/app.jar"}, files: map[string]string{
				"app/lib/spring-boot-3.5.16.jar": jar, "app/lib/tomcat-embed-core-10.1.55.jar": jar,
			}, jars: map[string]map[string]string{"app/app.jar": {
				jvmtest.Manifest:  "Main-Class: com.example.Main\r\nClass-Path: lib/spring-boot-3.5.16.jar lib/tomcat-embed-c\r\n ore-10.1.55.jar\r\nSpring-Boot-Version: 3.5.16\r\n",
				"application.yml": "server.port: 12",
			}}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "12",
		},
		"pathing jar": {
			layout: layout{args: []string{"java", "-cp", "path.jar", "com.example.Main"}, files: map[string]string{
				"lib/spring-boot-3.5.16.jar": jar, "classes/application.yml": "server.port: 13", "lib/tomcat-embed-core-10.1.55.jar": jar,
			}, jars: map[string]map[string]string{"path.jar": {
				jvmtest.Manifest: "Class-Path: classes/ lib/spring-boot-3.5.16.jar lib/tomcat-embed-core-10.1.55.jar http://example.com/x.jar %zz\n",
			}}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "13",
		},
		"everything merged into one jar": {
			layout: layout{args: []string{"java", "-jar", "all.jar"}, jars: map[string]map[string]string{"all.jar": {
				jvmtest.Manifest: "Main-Class: com.example.Main\n", "org/springframework/boot/SpringApplication.class": "", "org/apache/catalina/util/ServerInfo.properties": "server.number=10.1.55.0\n",
				"application.yml": "server.port: 14",
			}}},
			kind: classpath.KindClassPath, boot: "", tomcat: "10.1.55", port: "14",
		},
		"PropertiesLauncher with a loader path": {
			layout: layout{args: []string{"java", "-Dloader.path=ext,more.jar", "-jar", "app.jar"}, files: map[string]string{
				"ext/application.yml": "server.port: 15",
			}, jars: map[string]map[string]string{"app.jar": {
				jvmtest.Manifest:                   "Main-Class: " + loader3 + "PropertiesLauncher\nSpring-Boot-Version: 3.5.16\n",
				"BOOT-INF/classes/application.yml": "server.port: 1", "BOOT-INF/lib/tomcat-embed-core-10.1.55.jar": jar,
			}}},
			kind: classpath.KindJar, boot: "3.5.16", tomcat: "10.1.55", port: "15",
		},
		"PropertiesLauncher with loader.properties": {
			layout: layout{args: []string{"java", "-jar", "app.jar"}, files: map[string]string{
				"ext/application.yml": "server.port: 16",
			}, jars: map[string]map[string]string{"app.jar": {
				jvmtest.Manifest:                     "Main-Class: " + loader2 + "PropertiesLauncher\nSpring-Boot-Version: 2.7.18\n",
				"BOOT-INF/classes/loader.properties": "loader.path=ext/\n", "BOOT-INF/lib/tomcat-embed-core-9.0.83.jar": jar,
			}}},
			kind: classpath.KindJar, boot: "2.7.18", tomcat: "9.0.83", port: "16",
		},
		"versions from the manifests of the libraries": {
			layout: layout{args: []string{"java", "-cp", "lib/*:classes", "com.example.Main"}, files: map[string]string{
				"classes/application.yml": "server.port: 17",
			}, jars: map[string]map[string]string{
				"lib/spring-boot.jar":       {jvmtest.Manifest: "Implementation-Version: 3.5.16\n"},
				"lib/tomcat-embed-core.jar": {jvmtest.Manifest: "Implementation-Version: 10.1.55\n"},
			}},
			kind: classpath.KindClassPath, boot: "3.5.16", tomcat: "10.1.55", port: "17",
		},
		"module path": {
			layout: layout{args: []string{"java", "-p", "lib/spring-boot-3.5.16.jar:classes", "-m", "app/com.example.Main"}, files: map[string]string{
				"classes/application.yml": "server.port: 18", "lib/spring-boot-3.5.16.jar": jar,
			}},
			kind: classpath.KindClassPath, boot: "3.5.16", port: "18",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := tt.process(t)
			p.EnvKnown = true
			kind, ok := detectedIn(p)
			require.True(t, ok)
			require.Equal(t, tt.kind, kind)
			e, err := Load(p)
			require.NoError(t, err)
			require.Equal(t, tt.kind, e.Kind())
			boot, tomcat := e.Version()
			require.Equal(t, tt.boot, boot)
			require.Equal(t, tt.tomcat, tomcat)
			v, _, err := e.Get("server.port")
			require.NoError(t, err)
			require.Equal(t, tt.port, v.Text)
		})
	}
}

func TestDetectOthers(t *testing.T) {
	jar := jvmtest.EmptyJar(t)
	tests := map[string]layout{
		"no command line":   {},
		"nothing but java":  {args: []string{"java"}},
		"no java at all":    {args: []string{"nginx: master process /usr/sbin/nginx"}},
		"an ordinary jar":   {args: []string{"java", "-jar", "app.jar"}, jars: map[string]map[string]string{"app.jar": {jvmtest.Manifest: "Main-Class: com.example.Main\n"}}},
		"an ordinary class": {args: []string{"java", "-cp", "lib/*", "kafka.Kafka"}, files: map[string]string{"lib/kafka_2.13-3.7.0.jar": jar}},
		"a Tomcat with Spring Boot's jar": {
			args: []string{"java", "-cp", "bin/bootstrap.jar:lib/spring-boot-3.5.16.jar", "org.apache.catalina.startup.Bootstrap", "start"},
		},
		"a jar that is none": {args: []string{"java", "-jar", "app.jar"}, files: map[string]string{"app.jar": "text"}},
	}
	for name, l := range tests {
		t.Run(name, func(t *testing.T) {
			_, ok := detectedIn(l.process(t))
			require.False(t, ok)
		})
	}
	_, err := Load(tests["an ordinary class"].process(t))
	require.ErrorIs(t, err, ErrNotSpringBoot)
}

// What runs may stand in an argument file that cannot be read: then nothing is
// known, which is not the same as no Spring Boot.
func TestDetectWithoutArgumentFile(t *testing.T) {
	for _, args := range [][]string{{"java", "@gone"}, {"java", "-cp", "@gone", "com.example.Main"}} {
		e, err := Load(layout{args: args}.process(t))
		require.NoError(t, err)
		require.Equal(t, classpath.KindNone, e.Kind())
		require.Equal(t, "argument file @gone", e.Unavailable()[0].What)
		require.Nil(t, e.Settings().MaxConnections)
	}
}

// detectedIn says whether the process is a Spring Boot application, and how it was
// started. It reads no more than the central directory of the application's jar.
func detectedIn(p launch.Process) (classpath.Kind, bool) {
	l := launch.Parse(&p)
	if l.Jar == "" && l.Main == "" {
		return classpath.KindNone, false
	}
	c := classpath.New(&p, l)
	defer c.Close()
	return c.Detect(&p, l)
}
