package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// tomcatPort is the connector's of server.xml.
const tomcatPort = 8080

const serverXML = `<Server port="-1"><Service name="Catalina">
<Connector port="8080" address="127.0.0.1" maxThreads="100" minSpareThreads="4" maxConnections="200" acceptCount="5"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="false"/></Engine>
</Service></Server>`

// page takes some milliseconds of a CPU, then as long as it is asked to.
const page = `<%@page session="false"%><%
long n = 0; for (int i = 0; i < 200000; i++) n += i ^ (n << 1);
String wait = request.getParameter("ms"); if (wait != null) Thread.sleep(Long.parseLong(wait));
%>ok <%= n == 0 %>`

// tomcat is a Tomcat in a control group of its own.
type tomcat struct {
	pid   int
	group string
	log   string
}

func startTomcat(t *testing.T, name string, limits map[string]string) tomcat {
	t.Helper()
	if !exists("/opt/tomcat") || !exists("/opt/java") {
		t.Skip("no Java or no Tomcat on this disk")
	}
	base := t.TempDir()
	for path, text := range map[string]string{"conf/server.xml": serverXML, "webapps/ROOT/index.jsp": page} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(base, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(base, path), []byte(text), 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(base, "temp"), 0o755))
	web, err := os.ReadFile("/opt/tomcat/conf/web.xml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(base, "conf/web.xml"), web, 0o644))
	log, err := os.Create(filepath.Join(base, "log"))
	require.NoError(t, err)
	defer log.Close()
	dir := group(t, name, limits)
	cmd := exec.Command("/bin/busybox", "sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, dir,
		"/opt/java/bin/java", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", "/opt/tomcat/bin/bootstrap.jar:/opt/tomcat/bin/tomcat-juli.jar",
		"-Dcatalina.home=/opt/tomcat", "-Dcatalina.base="+base, "-Djava.io.tmpdir="+base+"/temp",
		"org.apache.catalina.startup.Bootstrap", "start")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH=/lib64")
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	client := http.Client{Timeout: 2 * time.Minute}
	require.Eventually(t, func() bool {
		response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", tomcatPort))
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, 4*time.Minute, time.Second)
	return tomcat{cmd.Process.Pid, dir, log.Name()}
}

func (tc tomcat) agent(t *testing.T, address string) {
	t.Helper()
	startAgent(t, "--port", fmt.Sprint(tomcatPort), "--web.listen-address", address)
	require.Eventually(t, func() bool { return ready(address) }, time.Minute, 200*time.Millisecond)
}

// A real JVM that a quota throttles, with the memory limit that it sees itself.
func TestJVMUnderAQuota(t *testing.T) {
	inGuest(t)
	const agent, memory = "127.0.0.1:10903", 512 << 20
	tc := startTomcat(t, "jvm", map[string]string{"memory.max": fmt.Sprint(memory), "memory.swap.max": "0"})
	write(t, filepath.Join(tc.group, "cpu.max"), "3000 100000")
	tc.agent(t, agent)
	var v view
	v.watch(t, agent, demo.BurstOptions{
		Address: fmt.Sprintf("127.0.0.1:%d", tomcatPort), Path: "/?ms=100", Clients: 60,
		ConnectTimeout: 10 * time.Second, RequestTimeout: 20 * time.Second,
	})
	require.Contains(t, v.causes, "cpu_throttled", "%s", v.last)
	require.Contains(t, v.throttled.Verdict.Summary+fmt.Sprint(v.throttled.Verdict.Findings), "CPU limit throttled the process")
	require.NotNil(t, v.throttled.Process.MemoryLimitBytes)
	require.EqualValues(t, memory, *v.throttled.Process.MemoryLimitBytes)
	report("a JVM throttled by cpu.max", "%s; memory limit seen", strings.Join(v.causes, ", then "))
}

// A pids limit that leaves Tomcat no thread to make is said. Tomcat's poller may end
// of it, and then there are fewer threads than allowed again: the number of threads
// alone does not always show it, what the cgroup counted does.
func TestPidsLimitStopsThreads(t *testing.T) {
	inGuest(t)
	const agent = "127.0.0.1:10904"
	tc := startTomcat(t, "pids", nil)
	current, err := os.ReadFile(filepath.Join(tc.group, "pids.current"))
	require.NoError(t, err)
	limit := strings.TrimSpace(string(current))
	write(t, filepath.Join(tc.group, "pids.max"), limit)
	tc.agent(t, agent)
	burst, err := demo.Burst(t.Context(), demo.BurstOptions{
		Address: fmt.Sprintf("127.0.0.1:%d", tomcatPort), Path: "/?ms=1000", Clients: 30,
		ConnectTimeout: 5 * time.Second, RequestTimeout: 5 * time.Second,
	})
	require.NoError(t, err)
	stopped, err := os.ReadFile(filepath.Join(tc.group, "pids.events"))
	require.NoError(t, err)
	require.NotContains(t, string(stopped), "max 0\n", "no thread was refused: %s", burst)
	l := onlyListener(t, agent)
	require.NotNil(t, l.Process.PIDsLimit)
	require.Equal(t, limit, fmt.Sprint(*l.Process.PIDsLimit))
	require.NotNil(t, l.Process.Threads)
	text, err := os.ReadFile(tc.log)
	require.NoError(t, err)
	require.Contains(t, codes(l), "pids_limit")
	report("a pids limit that stops Tomcat's threads", "%d threads afterwards, %d allowed; finding pids_limit; verdict %s %s; Tomcat logs %s", *l.Process.Threads, *l.Process.PIDsLimit,
		l.Verdict.Status, l.Verdict.Cause, map[bool]string{true: "unable to create native thread", false: "nothing"}[strings.Contains(string(text), "unable to create native thread")])
}

func codes(l api.Listener) (all []string) {
	for _, f := range l.Verdict.Findings {
		all = append(all, f.Code)
	}
	return all
}

func onlyListener(t *testing.T, agent string) api.Listener {
	t.Helper()
	response, err := http.Get("http://" + agent + "/api/v1/snapshot")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var snapshot api.Snapshot
	require.NoError(t, json.Unmarshal(text, &snapshot))
	require.Len(t, snapshot.Listeners, 1, "%s", text)
	require.NotNil(t, snapshot.Listeners[0].Process, "%s", text)
	return snapshot.Listeners[0]
}
