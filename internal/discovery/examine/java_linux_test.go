package examine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestBootstrapCommandLine(t *testing.T) {
	tests := map[string]struct {
		args               string
		options, arguments string
		ok                 bool
	}{
		"catalina.sh":    {"java -Da=b -cp x.jar org.apache.catalina.startup.Bootstrap start", "-Da=b -cp x.jar", "start", true},
		"-config":        {"java org.apache.catalina.startup.Bootstrap -config a.xml start", "", "-config a.xml start", true},
		"jsvc":           {"jsvc.exec -user x -Da=b org.apache.catalina.startup.Bootstrap", "-user x -Da=b", "", true},
		"bootstrap.jar":  {"java -Da=b -jar /t/bin/bootstrap.jar start", "-Da=b -jar", "start", true},
		"another jar":    {"java -jar app.jar org.apache.catalina.startup.Bootstrap", "", "", false},
		"another class":  {"java -cp x com.example.Main", "", "", false},
		"the name alone": {"org.apache.catalina.startup.Bootstrap", "", "", false},
		"nothing":        {"", "", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options, arguments, ok := bootstrap(strings.Fields(tt.args))
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.options, strings.Join(options, " "))
			require.Equal(t, tt.arguments, strings.Join(arguments, " "))
		})
	}
}

// TestArgumentFile: of "java @file" only the JVM knows the rest.
func TestArgumentFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("conf/other.xml", `<Server><Service><Connector port="8080" maxThreads="${n}"/></Service></Server>`)
	target := &target{args: []string{"java", "@file"}, files: ourFiles(t)}
	target.jvm = &hsperf.JVM{
		JavaCommand: BootstrapClass + " -config conf/other.xml start",
		VMArgs:      "-Xmx1g -Dcatalina.base=" + dir + " -Dn=33",
	}
	f := identify(target)
	require.Len(t, f.Connectors, 1)
	require.Equal(t, 33, f.Connectors[0].MaxThreads.Value)
	require.Equal(t, "-Dn among the JVM's arguments via conf/other.xml line 1", f.Connectors[0].MaxThreads.Source)

	target.jvm.JavaCommand = "com.example.Main " + BootstrapClass
	require.Empty(t, identify(target).Connectors)
}

func TestSystemProperties(t *testing.T) {
	got := systemProperties(
		[]string{"-Da=1", "-Db=1", "-Db=2", "-Dempty=", "-Dflag", "-cp", "x", "-Xmx1g", "-De=x=y"},
		map[string]string{
			"JAVA_TOOL_OPTIONS": `-Da=0 -Dt="two words"`,
			"JDK_JAVA_OPTIONS":  "-Dj=1 -Da=0",
			"_JAVA_OPTIONS":     "-Db=3",
		},
		"-Da=99 -Df=1 -Df=2",
	)
	text := map[string]string{}
	for name, p := range got {
		text[name] = p.Text + "|" + p.Source
	}
	require.Equal(t, map[string]string{
		"a": "1|-Da", "b": "3|-Db in _JAVA_OPTIONS", "empty": "|-Dempty", "e": "x=y|-De",
		"t": "two words|-Dt in JAVA_TOOL_OPTIONS", "j": "1|-Dj in JDK_JAVA_OPTIONS",
		"f": "2|-Df among the JVM's arguments",
	}, text)
}

// TestCutVMArgs: of a text that the JVM has cut, the last word may be half a one.
func TestCutVMArgs(t *testing.T) {
	vm := "-Da=1 -Dpad=" + strings.Repeat("x", maxVMArgs) + " "
	vm = vm[:maxVMArgs-len(" -Dmax=5")] + " -Dmax=5"
	require.Len(t, vm, maxVMArgs)
	require.NotContains(t, systemProperties(nil, nil, vm), "max", "it was 50")
	require.Equal(t, "1", systemProperties(nil, nil, vm)["a"].Text)
	require.Equal(t, "5", systemProperties(nil, nil, "-Dmax=5")["max"].Text)
}

func FuzzSystemProperties(f *testing.F) {
	m := mutate.Into(f)
	m.Add(`-Da="b c" 'd`, "-Dx=y -D", "-D=")
	m.Fuzz(func(t *testing.T, option, tool, vm string) {
		for name, p := range systemProperties(launch.SplitOptions(option), map[string]string{"JAVA_TOOL_OPTIONS": tool}, vm) {
			require.Contains(t, p.Source, "-D"+name)
		}
	})
}

// ourFiles are this process's.
func ourFiles(t *testing.T) *files {
	t.Helper()
	p, err := hostFS(t).Process(os.Getpid())
	require.NoError(t, err)
	s, err := newSubject(hostFS(t), Request{PID: p.PID, StartTime: p.StartTime})
	require.NoError(t, err)
	t.Cleanup(s.handles.Close)
	return s.files()
}

func TestNumbersAreBounded(t *testing.T) {
	require.Len(t, numbersIn([]string{strings.Repeat("1 ", 1000)}), maxNumbers)
}

// Ports that the JVM's options open for itself are never a connector's.
func TestPortsOfTheJVM(t *testing.T) {
	options := []string{
		"java", "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:5005",
		"-Dcom.sun.management.jmxremote.port=9010", "-Dcom.sun.management.jmxremote.rmi.port=9011", "-jar", "app.jar",
	}
	require.Equal(t, map[uint16]bool{5005: true, 9010: true, 9011: true}, jvmPorts(options))
	require.Equal(t, map[uint16]bool{5006: true}, jvmPorts([]string{"-Xrunjdwp:transport=dt_socket,address=5006", "-agentlib:jdwp=server=y"}))
}
