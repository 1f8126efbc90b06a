package attacks

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	// maxPeak is the agent's memory under attack, of the manifests' 128 MiB.
	maxPeak = 96
	// secret must not be seen anywhere.
	secret = "TOPSECRET"
	port   = 18080
)

// attack is a hostile process.
type attack struct {
	args  []string
	env   []string
	files map[string]string
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func bootFile(name, text string) attack {
	return attack{args: []string{"-cp", ".", "-jar", "app.jar"}, files: map[string]string{name: text}}
}

func attacks() map[string]attack {
	const mb = 1 << 20
	tomcat := func(xml string) attack {
		return attack{args: []string{"-Dcatalina.base=.", "org.apache.catalina.startup.Bootstrap", "start"}, files: map[string]string{"conf/server.xml": xml}}
	}
	return map[string]attack{
		"profile expression":   bootFile("application.properties", "spring.config.activate.on-profile="+strings.Repeat("!", 4*mb)),
		"YAML key x elements":  bootFile("application.yml", "? "+strings.Repeat("k", 3*mb)+"\n: ["+strings.Repeat("a,", 49_000)+"]\n"),
		"YAML list of 4 MiB":   bootFile("application.yml", "a: ["+strings.Repeat("a,", 2*mb)+"]\n"),
		"YAML list of 1 MiB":   bootFile("application.yml", "a: ["+strings.Repeat("a,", mb/2-100)+"]\n"),
		"list of a property":   bootFile("application.properties", strings.Repeat("k", 400)+"[]="+strings.Repeat("a,", 400_000)),
		"imports":              bootFile("application.properties", "spring.config.import="+numbered(50_000, "a%d.yml,")),
		"profile groups":       bootFile("application.properties", numbered(40_000, "spring.profiles.group.g%d=a\n")),
		"application JSON":     {args: []string{"-jar", "app.jar"}, env: []string{`SPRING_APPLICATION_JSON={"` + strings.Repeat("k", 45_000) + `":[` + strings.Repeat("1,", 20_000) + `1]}`}},
		"names of files":       {args: []string{"-jar", "app.jar"}, env: []string{"SPRING_CONFIG_NAME=" + numbered(15_000, "n%d,")}},
		"DOCTYPEs":             tomcat(strings.Repeat("<!DOCTYPE a [<!ENTITY b 'c'>]>", 100_000) + "<Server/>"),
		"connectors":           tomcat("<Server><Service>" + strings.Repeat(`<Connector port="18080"/>`, 10_000) + "</Service></Server>"),
		"a value that is none": {args: []string{"-jar", "app.jar", "--server.tomcat.max-connections=${API_TOKEN}", "--spring.config.import=configserver:http://u:" + secret + "@h/?t=" + secret}, env: []string{"API_TOKEN=" + secret}},
		"an attribute":         tomcat(`<Server><Service><Connector port="18080" maxThreads="` + secret + `"/></Service></Server>`),
	}
}

// TestFiles: the agent lives, stays small, goes on looking, and says nothing of
// what it was not meant to say.
func TestFiles(t *testing.T) {
	nettest.Root(t)
	program, java := build(t), asJava(t)
	t.Logf("%-22s %5s %8s %8s %8s  %s", "attack", "peak", "missed", "oldest", "end", "what the agent said")
	for name, x := range attacks() {
		t.Run(name, func(t *testing.T) {
			ns := nettest.Namespace(t)
			a := startAgent(t, ns, program)
			x.start(t, ns, java)
			require.Eventually(t, func() bool { // it is seen, and looked into
				d, _ := a.snapshot(t)
				for _, l := range d.Listeners {
					if l.Port == port {
						return true
					}
				}
				return false
			}, time.Minute, 50*time.Millisecond)
			said := ""
			for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(50 * time.Millisecond) {
				d, text := a.snapshot(t)
				require.NotContains(t, text, secret)
				said = d.about()
			}
			for _, path := range []string{"/metrics", "/"} {
				require.NotContains(t, a.get(t, path), secret)
			}
			peak, missed := a.peak(t), a.missed(t)
			require.LessOrEqual(t, peak, maxPeak)
			end := a.stop(t)
			require.NotContains(t, a.log.String(), secret)
			t.Logf("%-22s %4dM %8.0f %7.2fs %7.2fs  %.90s", name, peak, missed, a.oldest.Seconds(), end.Seconds(), said)
		})
	}
}

// about is what was said of the configuration.
func (d *document) about() string {
	for _, u := range d.Unavailable {
		for _, word := range []string{"config", "spring", "SPRING", "server", "connectors", "properties"} {
			if strings.Contains(u.What, word) {
				return u.What + ": " + u.Why
			}
		}
	}
	return "nothing of the configuration"
}

// asJava is this program under another name, where nobody may read it.
func asJava(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "attacks") // TempDir's parent is root's alone
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer func() { _ = self.Close() }()
	copied, err := os.OpenFile(filepath.Join(dir, "java"), os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(copied, self)
	require.NoError(t, err)
	require.NoError(t, copied.Close())
	return copied.Name()
}

// start runs the attacker as nobody.
func (x attack) start(t *testing.T, ns *nettest.NS, java string) {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(java), "pod")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	for name, text := range x.files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	args := append([]string{"--net=" + ns.Path(), "--setuid", "65534", "--setgid", "65534", "--", java}, x.args...)
	cmd := exec.CommandContext(t.Context(), "nsenter", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{attackerPort + "=" + strconv.Itoa(port), "PATH=" + os.Getenv("PATH")}, x.env...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
}
