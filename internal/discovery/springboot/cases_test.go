package springboot

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

// binderCase is a case of testdata/binder/cases.json.
type binderCase struct {
	Name  string            `json:"name"`
	Files map[string]string `json:"files"`
	Env   map[string]string `json:"env"`
	VM    []string          `json:"vm"`
	Args  []string          `json:"args"`
	Web   bool              `json:"web"`
}

type binderCases struct {
	Names []string     `json:"names"`
	Cases []binderCase `json:"cases"`
}

func readJSON[T any](t testing.TB, file string) T {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var v T
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}

// bootTomcat are the versions of Spring Boot that the expected values were
// taken from, and the Tomcat of each.
func bootTomcat() map[string]string {
	return map[string]string{"2.3.12.RELEASE": "9.0.46", "2.7.18": "9.0.83", "3.5.16": "10.1.55", "4.1.1": "11.0.24"}
}

// layouts are how an application is started: as a class path of directories and as
// an executable jar.
func layouts() map[string]func(testing.TB, string, string, binderCase) launch.Process {
	return map[string]func(testing.TB, string, string, binderCase) launch.Process{"classpath": classPathLayout, "jar": jarLayout}
}

// TestBinderCases compares every case with what the real Spring Boot printed
// (testdata/binder).
func TestBinderCases(t *testing.T) { compareCases(t, "3.5.16", "jar") }

// TestLongBinderCases: for each version, in each layout.
func TestLongBinderCases(t *testing.T) {
	compareCases(t, "3.5.16", "classpath")
	for _, boot := range []string{"2.3.12.RELEASE", "2.7.18", "4.1.1"} {
		compareCases(t, boot, "classpath", "jar")
	}
}

func compareCases(t *testing.T, boot string, in ...string) {
	all := readJSON[binderCases](t, "testdata/binder/cases.json")
	expected := readJSON[map[string]map[string]string](t, "testdata/binder/expected-"+boot+".json")
	for _, layout := range in {
		t.Run(boot+"/"+layout, func(t *testing.T) {
			compared := 0
			for _, c := range all.Cases {
				want, ok := expected[c.Name]
				if !ok {
					continue // a case for other versions
				}
				compared++
				t.Run(c.Name, func(t *testing.T) {
					compareCase(t, layouts()[layout](t, t.TempDir(), boot, c), all.Names, want)
				})
			}
			require.GreaterOrEqual(t, compared, 200)
		})
	}
}

// classPathLayout is java -cp classes:lib/… Probe.
func classPathLayout(t testing.TB, dir, boot string, c binderCase) launch.Process {
	classes, cwd := filepath.Join(dir, "classes"), filepath.Join(dir, "cwd")
	require.NoError(t, os.MkdirAll(classes, 0o755))
	require.NoError(t, os.MkdirAll(cwd, 0o755))
	for name, text := range c.Files {
		if resource, ok := strings.CutPrefix(name, "classpath:"); ok {
			jvmtest.WriteFiles(t, classes, map[string]string{resource: text})
		} else {
			jvmtest.WriteFiles(t, cwd, map[string]string{name: text})
		}
	}
	cp := []string{classes}
	for _, jar := range bootJars(boot) {
		jvmtest.WriteFiles(t, filepath.Join(dir, "lib"), map[string]string{jar: jvmtest.EmptyJar(t)})
		cp = append(cp, filepath.Join(dir, "lib", jar))
	}
	args := append([]string{"/usr/bin/java"}, c.VM...)
	args = append(args, "-cp", strings.Join(cp, ":"), "Probe")
	p := processIn(cwd, append(args, c.Args...)...)
	p.Env, p.JavaVersion = c.Env, "17.0.15"
	return p
}

// jarLayout is java -jar app.jar.
func jarLayout(t testing.TB, dir, boot string, c binderCase) launch.Process {
	cwd := filepath.Join(dir, "cwd")
	require.NoError(t, os.MkdirAll(cwd, 0o755))
	loader := "org.springframework.boot.loader.launch.JarLauncher"
	if strings.HasPrefix(boot, "2.") {
		loader = "org.springframework.boot.loader.JarLauncher"
	}
	names := []string{jvmtest.Manifest}
	entries := map[string]string{jvmtest.Manifest: "Manifest-Version: 1.0\r\nMain-Class: " + loader +
		"\r\nSpring-Boot-Version: " + boot + "\r\nSpring-Boot-Classes: BOOT-INF/classes/\r\nSpring-Boot-Lib: BOOT-INF/lib/\r\n\r\n"}
	for name, text := range c.Files {
		if resource, ok := strings.CutPrefix(name, "classpath:"); ok {
			names = append(names, "BOOT-INF/classes/"+resource)
			entries["BOOT-INF/classes/"+resource] = text
		} else {
			jvmtest.WriteFiles(t, cwd, map[string]string{name: text})
		}
	}
	for _, jar := range bootJars(boot) {
		names = append(names, "BOOT-INF/lib/"+jar)
		entries["BOOT-INF/lib/"+jar] = jvmtest.EmptyJar(t)
	}
	jvmtest.WriteZip(t, filepath.Join(dir, "app.jar"), names, entries)
	args := append([]string{"java"}, c.VM...)
	args = append(args, "-jar", filepath.Join(dir, "app.jar"))
	p := processIn(cwd, append(args, c.Args...)...)
	p.Env, p.JavaVersion = c.Env, "17.0.15"
	return p
}

func bootJars(boot string) []string {
	return []string{"spring-boot-" + boot + ".jar", "tomcat-embed-core-" + bootTomcat()[boot] + ".jar"}
}

func compareCase(t *testing.T, p launch.Process, names []string, want map[string]string) {
	e, err := Load(p)
	require.NoError(t, err)
	boot, tomcat := e.Version()
	require.Equal(t, bootTomcat()[boot], tomcat)
	s := e.Settings()
	if why := want["failed"]; why != "" {
		// The application does not start: something must be said about it.
		require.NotEmpty(t, append(e.Unavailable(), s.Unavailable...), "Spring Boot failed with %s", why)
		return
	}
	require.Equal(t, want["profiles"], strings.Join(e.profiles, ","), "profiles")
	for _, name := range names {
		got, ok, err := e.Get(name)
		if want["error "+name] != "" {
			require.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		text, bound := want["value "+name]
		require.Equal(t, bound, ok, "%s found in %q", name, got.Source)
		require.Equal(t, unescape(text), got.Text, name)
		if ok {
			require.NotEmpty(t, got.Source)
			require.NotEmpty(t, got.Kind)
		}
	}
	compareConnector(t, s, want)
}

func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
}

// compareConnector compares the settings with the limits that the real
// connector had.
func compareConnector(t *testing.T, s Settings, want map[string]string) {
	ints := map[string]*model.Setting[int]{
		"MaxConnections": s.MaxConnections, "AcceptCount": s.AcceptCount, "MaxThreads": s.MaxThreads,
		"MinSpareThreads": s.MinSpareThreads, "MaxQueueSize": s.MaxQueue, "MaxKeepAliveRequests": s.MaxKeepAliveRequests,
	}
	for name, got := range ints {
		text, ok := want["connector "+name]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.NotNil(t, got, name)
		require.Equal(t, n, got.Value, name)
	}
	for name, got := range map[string]*model.Setting[time.Duration]{
		"ConnectionTimeout": s.ConnectionTimeout, "KeepAliveTimeout": s.KeepAliveTimeout,
	} {
		text, ok := want["connector "+name]
		if !ok {
			continue
		}
		millis, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.NotNil(t, got, name)
		require.Equal(t, time.Duration(millis)*time.Millisecond, got.Value, name)
	}
}

// processIn is a process whose working directory is dir.
func processIn(dir string, args ...string) launch.Process {
	return launch.Process{
		Args: args, Env: map[string]string{}, EnvKnown: true,
		Open: jvmtest.Dir(dir).Open, ReadDir: jvmtest.Dir(dir).ReadDir,
	}
}
