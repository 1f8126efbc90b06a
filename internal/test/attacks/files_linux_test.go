package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const mb = 1 << 20

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// boot is a Spring Boot application with one more file in its folder.
func boot(name, text string, args ...string) attack {
	return attack{args: application(args...), files: map[string]string{"app.jar": bootJar(nil), name: text}}
}

// application is the command line of a Spring Boot application.
func application(args ...string) []string { return append([]string{"-jar", "app.jar"}, args...) }

// catalina is that of a Tomcat; options are the JVM's.
func catalina(options ...string) []string {
	return append(append([]string{"-Dcatalina.base=.", "-Dcatalina.home=."}, options...), "org.apache.catalina.startup.Bootstrap", "start")
}

func server(threads int) string {
	return fmt.Sprintf(`<Server><Service><Connector port="%d" maxThreads="%d"/></Service></Server>`, hostilePort, threads)
}

func tomcat(xml string) attack {
	return attack{args: catalina(), files: map[string]string{"conf/server.xml": xml}}
}

func (a attack) saying(text string) attack {
	a.says = text
	return a
}

func (a attack) finding(threads int) attack {
	a.threads = threads
	return a
}

func (a attack) with(prepare func(t *testing.T, dir string) []string) attack {
	a.prepare = prepare
	return a
}

// large are small files that are made to become large or to take long.
func large() map[string]attack {
	json := boot("application.properties", "")
	json.env = []string{`SPRING_APPLICATION_JSON={"` + strings.Repeat("k", 45_000) + `":[` + strings.Repeat("1,", 20_000) + `1]}`}
	names := boot("application.properties", "")
	names.env = []string{"SPRING_CONFIG_NAME=" + numbered(15_000, "n%d,")}
	seven := boot("application.properties", "")
	for i := range 7 {
		seven.files[fmt.Sprintf("config/%d/application.properties", i)] = numbered(4*mb/24, "a.b.c.d%07d=${a.b.c}\n")
	}
	return map[string]attack{
		"profile expression":   boot("application.properties", "spring.config.activate.on-profile="+strings.Repeat("!", 4*mb)).saying(`application.properties.*larger than what is read`),
		"YAML key x elements":  boot("application.yml", "? "+strings.Repeat("k", mb-150_000)+"\n: ["+strings.Repeat("a,", 49_000)+"]\n").saying(`application.yml.*larger than what is read`),
		"YAML nested keys":     boot("application.yml", nestedKeys(150)).saying(`application.yml.*larger than what is read`),
		"YAML list of 4 MiB":   boot("application.yml", "a: ["+strings.Repeat("a,", 2*mb)+"]\n").saying(`application.yml.*larger than what is read`),
		"YAML list of 1 MiB":   boot("application.yml", "a: ["+strings.Repeat("a,", mb/2-100)+"]\n").saying(`application.yml.*larger than what is read`),
		"list of a property":   boot("application.properties", strings.Repeat("k", 400)+"[]="+strings.Repeat("a,", 400_000)).saying(`application.properties.*larger than what is read`),
		"imports":              boot("application.properties", "spring.config.import="+numbered(50_000, "a%d.yml,")).saying(`spring.config.import of application.properties.*larger than what is read`),
		"profile groups":       boot("application.properties", numbered(40_000, "spring.profiles.group.g%d=a\n")).saying(`application.properties.*larger than what is read`),
		"application JSON":     json.saying(`SPRING_APPLICATION_JSON.*larger than what is read`),
		"names of files":       names.saying(`spring.config.name.*larger than what is read`),
		"seven files of 4 MiB": seven.saying(`config/\d/application.properties.*larger than what is read`),
		"DOCTYPEs":             tomcat(strings.Repeat("<!DOCTYPE a [<!ENTITY b 'c'>]>", 30_000) + server(42)).finding(42),
		"DOCTYPEs of 3 MB":     tomcat(strings.Repeat("<!DOCTYPE a [<!ENTITY b 'c'>]>", 100_000) + server(42)).saying(`conf/server.xml.*larger than what is read`),
		"connectors":           tomcat("<Server><Service>" + strings.Repeat(`<Connector port="18080"/>`, 10_000) + "</Service></Server>").saying(`conf/server.xml.*larger than what is read`),
		"deflated nested jars": {args: []string{"-jar", "app.jar"}, files: map[string]string{"app.jar": nestedJars(4_000)}, says: `some jars.*larger than what is read`},
		"hard links of a jar": boot("application.properties", "").with(func(t *testing.T, dir string) []string {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "big.jar"), []byte(nestedJars(2_000)), 0o644))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "lib"), 0o755))
			for i := range 400 {
				require.NoError(t, os.Link(filepath.Join(dir, "big.jar"), filepath.Join(dir, "lib", fmt.Sprintf("%d.jar", i))))
			}
			return []string{"-cp", "lib/*", "org.springframework.boot.loader.launch.JarLauncher"}
		}).saying(`some jars.*larger than what is read`),
	}
}

func nestedKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + strings.Repeat("k", 1000) + ":\n")
	}
	return b.String() + strings.Repeat(" ", n) + "a: [" + strings.Repeat("a,", 20_000) + "]\n"
}

// rootOnly is a file that only root can read, with what must not be seen.
func rootOnly(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(public(t), name)
	text := "server.tomcat.max-connections=" + secret + "\nserver.tomcat.accept-count=" + canary + "\nlimit=" + canary + "\n"
	if strings.HasSuffix(name, ".xml") {
		text = fmt.Sprintf(`<Server><Service><Connector port="%d" acceptCount="%s" maxThreads="%s"/></Service></Server>`, hostilePort, canary, secret)
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// foreign are files that the process names and could not read itself, and values
// that are not to be repeated.
func foreign() map[string]attack {
	value := boot("application.properties", "", "--server.tomcat.max-connections=${API_TOKEN}",
		"--spring.config.import=configserver:http://u:"+secret+"@h/?t="+secret)
	value.env = []string{"API_TOKEN=" + secret}
	names := boot("application.properties", "server.tomcat.max-connections=\x1b[31m"+secret+"\u202e\n", "--spring.config.import=a\x1b[2J\u202e\u009bb\x7f.yml")
	attribute := `<Server><Service><Connector port="18080" maxThreads="` + secret + `"/></Service></Server>`
	expanded := fmt.Sprintf(`<Server><Service><Connector port="%d" acceptCount="${server.tomcat.accept-count}" maxThreads="${server.tomcat.max-connections}"/></Service></Server>`, hostilePort)
	return map[string]attack{
		"a value that is none": value.saying(`settings imported from configserver:http://h/:`),
		"control characters":   names.saying(`config file a.x1b.2J.*no such file`),
		"an attribute":         tomcat(attribute).finding(200),
		"import of root's": boot("application.properties", "").with(func(t *testing.T, _ string) []string {
			return application("--spring.config.import=file:" + rootOnly(t, "secret.properties"))
		}).saying(`config file file:/tmp/.*/secret.properties: permission denied`),
		"import by a symlink": boot("application.properties", "").with(func(t *testing.T, dir string) []string {
			require.NoError(t, os.Symlink(rootOnly(t, "secret.properties"), filepath.Join(dir, "a.properties")))
			return application("--spring.config.import=file:a.properties")
		}).saying(`config file file:a.properties: permission denied`),
		"own file is root's": {args: []string{"-jar", "app.jar"}, files: map[string]string{"app.jar": bootJar(nil)}, prepare: func(t *testing.T, dir string) []string {
			require.NoError(t, os.Rename(rootOnly(t, "application.properties"), filepath.Join(dir, "application.properties")))
			return application()
		}, says: `config file file:./application.properties: permission denied`},
		"catalina.config of root's": tomcat(expanded).with(func(t *testing.T, _ string) []string {
			return catalina("-Dcatalina.config=file://" + rootOnly(t, "secret.properties"))
		}).saying(`catalina.properties: open /tmp/.*/secret.properties: permission denied`),
		"server.xml of root's": tomcat(attribute).with(func(t *testing.T, _ string) []string {
			return append(catalina(), "-config", rootOnly(t, "server.xml"))
		}).saying(`server.xml: permission denied`),
		"configtree of proc": boot("application.properties", "server.tomcat.max-connections=${comm}\n", "--spring.config.import=configtree:/proc/1/").saying(`configtree:/proc/1: .*not a file system that is read`),
		"server.xml is FUSE": tomcat(attribute).with(func(t *testing.T, _ string) []string {
			return append(catalina(), "-config", nettest.SilentFileSystem(t)+"/server.xml")
		}).saying(`server.xml: "fuse": not a file system that is read`),
		"server.xml is kmsg": tomcat("").with(func(t *testing.T, dir string) []string {
			require.NoError(t, os.Remove(filepath.Join(dir, "conf/server.xml")))
			require.NoError(t, os.Symlink("/proc/kmsg", filepath.Join(dir, "conf/server.xml")))
			return catalina()
		}).saying(`server.xml: "proc": not a file system that is read`),
		"server.xml is a FIFO": tomcat("").with(func(t *testing.T, dir string) []string {
			require.NoError(t, os.Remove(filepath.Join(dir, "conf/server.xml")))
			fifo(t, filepath.Join(dir, "conf/server.xml"))
			return catalina()
		}).saying(`server.xml" is not a regular file`),
		"server.xml is a device": tomcat("").with(func(t *testing.T, dir string) []string {
			require.NoError(t, os.Remove(filepath.Join(dir, "conf/server.xml")))
			require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "conf/server.xml")))
			return catalina()
		}).saying(`server.xml: "devtmpfs": not a file system that is read`),
	}
}
