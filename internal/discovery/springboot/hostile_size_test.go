package springboot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

// repeated is n lines made of their numbers.
func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Small files that are made to become large: each costs less than it would take
// to harm an agent, is said, and leaves what else is configured as it is.
func TestLongSmallFilesStaySmall(t *testing.T) {
	const mb = 1 << 20
	sevenFiles := map[string]string{}
	for i := range 7 {
		sevenFiles["p"+strconv.Itoa(i)+".properties"] = repeated(180_000, "#---\n!x %d\n#---\n")
	}
	for name, c := range map[string]binderCase{
		"negations":            {Files: map[string]string{"application.properties": "spring.config.activate.on-profile=" + strings.Repeat("!", mb-100) + "a\n"}},
		"parentheses":          {Files: map[string]string{"application.properties": "spring.config.activate.on-profile=" + strings.Repeat("(", mb-100) + "\n"}},
		"key times elements":   {Files: map[string]string{"application.yml": "? " + strings.Repeat("k", mb-200_000) + "\n: [" + strings.Repeat("a,", 49_000) + "]\n"}},
		"nested keys":          {Files: map[string]string{"application.yml": strings.Repeat("{"+strings.Repeat("k", 1000)+": ", 150) + "[" + strings.Repeat("a,", 40_000) + "]" + strings.Repeat("}", 150)}},
		"list of a property":   {Files: map[string]string{"application.properties": strings.Repeat("k", 400) + "[]=" + strings.Repeat("a,", 400_000) + "\n"}},
		"application JSON":     {Env: map[string]string{"SPRING_APPLICATION_JSON": `{"` + strings.Repeat("k", 45_000) + `":[` + strings.Repeat("1,", 22_000) + `1]}`}},
		"nested JSON":          {Env: map[string]string{"SPRING_APPLICATION_JSON": strings.Repeat(`{"key":`, 9_000) + "1" + strings.Repeat("}", 9_000)}},
		"YAML list":            {Files: map[string]string{"application.yml": "a: [" + strings.Repeat("a,", 500_000) + "]"}},
		"YAML list of lines":   {Files: map[string]string{"application.yml": "a:\n" + strings.Repeat("- \n", 340_000)}},
		"names":                {Env: map[string]string{"SPRING_CONFIG_NAME": repeated(15_000, "n%d,")}},
		"imports":              {Files: map[string]string{"application.properties": "spring.config.import=" + repeated(50_000, "a%d.yml,") + "\n"}},
		"indexed imports":      {Files: map[string]string{"application.yml": "spring.config.import: [" + repeated(40_000, "a%d.yml,") + "]\n"}},
		"profile groups":       {Files: map[string]string{"application.properties": repeated(40_000, "spring.profiles.group.g%d=a\n") + "spring.profiles.active=g1,g2\n"}},
		"chain of groups":      {Files: map[string]string{"application.yml": "spring.profiles.group: {" + repeated(10_000, "g%[1]d: 'h%[1]d,i%[1]d',") + "}\n"}, Args: []string{"--spring.profiles.active=" + repeated(10_000, "g%d,")}},
		"documents":            {Files: map[string]string{"application.properties": repeated(50_000, "a=%d\n#---\n")}},
		"separators":           {Files: map[string]string{"application.properties": repeated(40_000, "#---\n!%d\n")}},
		"seven files":          {Files: sevenFiles, Args: []string{"--spring.config.import=p0.properties,p1.properties,p2.properties,p3.properties,p4.properties,p5.properties,p6.properties"}},
		"options again":        {Args: strings.Fields(strings.Repeat("--a=b ", 19_000))},
		"keys":                 {Files: map[string]string{"application.properties": repeated(49_000, "k%d=\n")}},
		"placeholders":         {Files: map[string]string{"application.properties": repeated(900, "a%d=${b${b${b${b}}}}\n#---\nspring.config.import=${a1},${a2},${a3}\n")}},
		"XML":                  {Files: map[string]string{"application.xml": "<properties>" + strings.Repeat("<entry key='a'/>", 60_000) + "</properties>"}},
		"options of the VM":    {Env: map[string]string{"JAVA_TOOL_OPTIONS": strings.Repeat("-Da ", 60_000)}},
		"imports of locations": {Args: []string{"--spring.config.location=" + repeated(20_000, "file:/x%d/,")}},
	} {
		for _, boot := range []string{"2.3.12.RELEASE", "3.5.16"} {
			t.Run(name+" "+boot, func(t *testing.T) {
				p := jarLayout(t, t.TempDir(), boot, c)
				p.Args = append(p.Args, "--server.tomcat.accept-count=7")
				peak := peakHeap(t, func() {
					e := loadWithin(t, p, time.Minute)
					require.Equal(t, 7, e.Settings().AcceptCount.Value)
					require.Less(t, len(e.Unavailable()), 100)
					require.Less(t, len(fmt.Sprint(e.Unavailable())), 64<<10)
				})
				require.Less(t, peak, uint64(64*mb))
			})
		}
	}
}

// A class path that names one jar again and again, and a jar of thousands.
func TestLongManyJars(t *testing.T) {
	dir := t.TempDir()
	many := map[string]string{}
	for i := range 4_000 {
		many["d/file-with-a-long-name-"+strings.Repeat("x", 60)+strconv.Itoa(i)+".properties"] = ""
	}
	jar := jvmtest.ZipOf(t, 8, many)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lib"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib", "0.jar"), jar, 0o600))
	for i := range 400 {
		require.NoError(t, os.Link(filepath.Join(dir, "lib", "0.jar"), filepath.Join(dir, "lib", strconv.Itoa(i+1)+".jar")))
	}
	fat := map[string]string{jvmtest.Manifest: "Main-Class: org.springframework.boot.loader.launch.JarLauncher\nSpring-Boot-Version: 3.5.16\n"}
	names := []string{jvmtest.Manifest}
	for i := range 400 {
		name := "BOOT-INF/lib/" + strconv.Itoa(i) + ".jar"
		names, fat[name] = append(names, name), string(jar)
	}
	jvmtest.WriteZip(t, filepath.Join(dir, "fat.jar"), names, fat)
	for name, p := range map[string]launch.Process{
		"links":  processIn(dir, "java", "-cp", "lib/*", "Main", "--server.port=7"),
		"nested": processIn(dir, "java", "-jar", "fat.jar", "--server.port=7"),
	} {
		t.Run(name, func(t *testing.T) {
			peak := peakHeap(t, func() {
				e, err := Load(p)
				if name == "links" {
					require.ErrorIs(t, err, ErrNotSpringBoot)
					return
				}
				require.NoError(t, err)
				require.Contains(t, strings.Join(whats(e.Unavailable()), "\n"), "some jars of the class path")
				require.Equal(t, 7, e.Settings().Port.Value)
			})
			require.Less(t, peak, uint64(64<<20))
		})
	}
}

// peakHeap is how much the heap in use grew while fn ran, as the samples show.
func peakHeap(t *testing.T, fn func()) uint64 {
	t.Helper()
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	base, peak := inUse(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, inUse())
			}
		}
	}()
	fn()
	close(stop)
	<-done
	peak = max(peak, inUse())
	return peak - min(peak, base)
}
