package launch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

func TestParseLaunch(t *testing.T) {
	tests := map[string]struct {
		args []string
		env  map[string]string
		want Command
	}{
		"jar": {
			args: []string{"java", "-Xmx1g", "-jar", "app.jar", "--server.port=1", "-cp", "x"},
			want: Command{options: []option{{"-Xmx1g", ""}}, Jar: "app.jar", Args: []string{"--server.port=1", "-cp", "x"}},
		},
		"class path and main class": {
			args: []string{"java", "-cp", "a:b/*", "-Da=1", "com.example.Main", "@x"},
			want: Command{options: []option{{"-Da=1", ""}}, ClassPath: []string{"a", "b/*"}, Main: "com.example.Main", Args: []string{"@x"}},
		},
		"last class path wins, joined form": {
			args: []string{"java", "-classpath", "a", "--class-path=b", "Main"},
			want: Command{ClassPath: []string{"b"}, Main: "Main"},
		},
		"no class path": {
			args: []string{"java", "Main"},
			want: Command{ClassPath: []string{"."}, Main: "Main"},
		},
		"class path of the environment": {
			args: []string{"java", "Main"}, env: map[string]string{"CLASSPATH": "x:y"},
			want: Command{ClassPath: []string{"x", "y"}, Main: "Main"},
		},
		"options with a value of their own": {
			args: []string{
				"java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-modules", "m",
				"--add-exports=a/b=c", "--enable-preview", "-XX:+UseZGC", "-jar", "app.jar",
			},
			want: Command{options: []option{
				{"--add-opens", ""}, {"--add-modules", ""}, {"--add-exports=a/b=c", ""}, {"--enable-preview", ""}, {"-XX:+UseZGC", ""},
			}, Jar: "app.jar"},
		},
		"module": {
			args: []string{"java", "-p", "mods:libs", "-m", "app/com.example.Main", "x"},
			want: Command{Modules: []string{"mods", "libs"}, Main: "app/com.example.Main", ClassPath: []string{"."}, Args: []string{"x"}},
		},
		"options of the environment in the VM's order": {
			args: []string{"java", "-Da=3", "-jar", "app.jar"},
			env:  map[string]string{"JAVA_TOOL_OPTIONS": "-Da=1", "JDK_JAVA_OPTIONS": "-Da=2", "_JAVA_OPTIONS": "-Da=4"},
			want: Command{options: []option{
				{"-Da=1", "JAVA_TOOL_OPTIONS"}, {"-Da=2", "JDK_JAVA_OPTIONS"}, {"-Da=3", ""}, {"-Da=4", "_JAVA_OPTIONS"},
			}, Jar: "app.jar"},
		},
		"argument file with the class path": {
			args: []string{"java", "@jib-classpath", "@jib-main", "@mine"},
			want: Command{ClassPath: []string{"/app/resources", "/app/libs/x.jar"}, Main: "com.example.Main", Args: []string{"@mine"}},
		},
		"argument files do not nest": {
			args: []string{"java", "@nested"},
			want: Command{ClassPath: []string{"."}, Main: "@jib-main"},
		},
		"argument files switched off": {
			args: []string{"java", "--disable-@files", "@jib-main"},
			want: Command{options: []option{{"--disable-@files", ""}}, ClassPath: []string{"."}, Main: "@jib-main"},
		},
		"an at sign escaped": {
			args: []string{"java", "-Dx=1", "@@jib-main"},
			want: Command{options: []option{{"-Dx=1", ""}}, ClassPath: []string{"."}, Main: "@jib-main"},
		},
		"class path of an argument file": {
			args: []string{"java", "-cp", "@value", "com.example.Main", "@mine"},
			want: Command{ClassPath: []string{"/app/resources", "/app/libs/x.jar"}, Main: "com.example.Main", Args: []string{"@mine"}},
		},
		"class path and main class of argument files": {
			args: []string{"java", "-Da=1", "-cp", "@value", "@jib-main", "@mine"},
			want: Command{options: []option{{"-Da=1", ""}}, ClassPath: []string{"/app/resources", "/app/libs/x.jar"}, Main: "com.example.Main", Args: []string{"@mine"}},
		},
		"a value that begins with an at sign": {
			args: []string{"java", "--module-path", "@@value", "-m", "app/com.example.Main"},
			want: Command{Modules: []string{"@value"}, Main: "app/com.example.Main", ClassPath: []string{"."}},
		},
		"jar of an argument file": {
			args: []string{"java", "-jar", "@jib-main", "@mine"},
			want: Command{Jar: "com.example.Main", Args: []string{"@mine"}},
		},
		"the main class ends them in a file, too": {
			args: []string{"java", "@main-and-args", "@mine"},
			want: Command{ClassPath: []string{"."}, Main: "com.example.Main", Args: []string{"--x=1", "@mine"}},
		},
		"a joined value is none": {
			args: []string{"java", "--class-path=@value", "@jib-main"},
			want: Command{ClassPath: []string{"@value"}, Main: "com.example.Main"},
		},
		"nothing but the name": {args: []string{"java"}, want: Command{ClassPath: []string{"."}}},
		"no command line":      {want: Command{ClassPath: []string{"."}}},
		"-jar at the end":      {args: []string{"java", "-jar"}, want: Command{ClassPath: []string{"."}}},
	}
	dir := t.TempDir()
	jvmtest.WriteFiles(t, dir, map[string]string{
		"jib-classpath": `-cp "/app/resources:/app/libs/x.jar"`, "jib-main": "com.example.Main", "nested": "@jib-main",
		"value": `"/app/resources:/app/libs/x.jar"`, "main-and-args": "com.example.Main --x=1",
	})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := process(dir, tt.args...)
			p.Env = tt.env
			got := Parse(&p)
			require.Empty(t, got.Missing)
			require.Equal(t, tt.want, *got)
		})
	}
}

// A missing argument file is reported, and the rest of the line still counts.
func TestParseLaunchMissingFiles(t *testing.T) {
	p := process(t.TempDir(), "java", "@gone", "-XX:VMOptionsFile=gone-too", "-Da=1", "-jar", "app.jar")
	got := Parse(&p)
	require.Equal(t, "app.jar", got.Jar)
	require.Equal(t, []option{{"-Da=1", ""}}, got.options)
	require.Len(t, got.Missing, 2)
	require.Equal(t, "argument file @gone", got.Missing[0].What)
	require.Equal(t, "no such file", got.Missing[0].Why)
}

// A class path whose file cannot be read takes no other word's place.
func TestParseLaunchMissingClassPath(t *testing.T) {
	p := process(t.TempDir(), "java", "-cp", "@gone", "com.example.Main", "--server.port=1")
	got := Parse(&p)
	require.Equal(t, "com.example.Main", got.Main)
	require.Equal(t, []string{"--server.port=1"}, got.Args)
	require.Len(t, got.Missing, 1)
}

// Without the environment, the options in it are still in java.rt.vmArgs.
func TestSystemPropertiesFromVMArgs(t *testing.T) {
	p := process(t.TempDir(), "java", "-Dserver.address=a b", "-jar", "app.jar")
	p.EnvKnown, p.VMArgs = false, "-Dserver.port=7 -Dserver.address=a b"
	d := SystemProperties(&p, Parse(&p))
	require.Equal(t, "7", d.Values["server.port"])
	require.Equal(t, "a b", d.Values["server.address"])
	require.Equal(t, "-Dserver.port in the VM's arguments", d.Source("server.port"))
	require.Equal(t, "-Dserver.address", d.Source("server.address"))

	p.VMArgs = "-Dserver.port=7 -Dx=" + strings.Repeat("y", 990) + " -Dserver.tomcat.accept-count=12"
	p.VMArgs = p.VMArgs[:maxVMArgs]
	d = SystemProperties(&p, Parse(&p))
	require.Equal(t, "7", d.Values["server.port"])
	for _, name := range d.Names {
		require.NotContains(t, name, "server.t", "an option that was cut")
	}
}

// process is one whose working directory is dir.
func process(dir string, args ...string) Process {
	return Process{
		Args: args, Env: map[string]string{}, EnvKnown: true,
		Open: jvmtest.Dir(dir).Open, ReadDir: jvmtest.Dir(dir).ReadDir,
	}
}
