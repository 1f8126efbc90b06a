package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// shipped is where the disk has files of deploy.
const shipped = "/opt/deploy/"

// daemonSet is what the manifest gives the node agent.
type daemonSet struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				HostPID    bool `yaml:"hostPID"`
				Containers []struct {
					Args            []string
					SecurityContext struct {
						RunAsUser    int `yaml:"runAsUser"`
						Capabilities struct{ Add, Drop []string }
						Escalation   bool `yaml:"allowPrivilegeEscalation"`
						ReadOnly     bool `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

// capabilities are those that the shipped files name.
func capabilities(t *testing.T, names []string) (all []int) {
	t.Helper()
	numbers := map[string]int{
		"SYS_ADMIN": unix.CAP_SYS_ADMIN, "SYS_PTRACE": unix.CAP_SYS_PTRACE,
		"SETUID": unix.CAP_SETUID, "SETGID": unix.CAP_SETGID, "DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
	}
	for _, name := range names {
		require.Contains(t, numbers, name)
		all = append(all, numbers[name])
	}
	return all
}

// nodeAgent is the container of the DaemonSet.
func nodeAgent(t *testing.T) confinement {
	t.Helper()
	file, err := os.Open(shipped + "daemonset.yaml")
	require.NoError(t, err)
	defer file.Close()
	var set daemonSet
	for documents := yaml.NewDecoder(file); set.Kind != "DaemonSet"; {
		set = daemonSet{}
		require.NoError(t, documents.Decode(&set))
	}
	require.True(t, set.Spec.Template.Spec.HostPID)
	require.Len(t, set.Spec.Template.Spec.Containers, 1)
	c := set.Spec.Template.Spec.Containers[0]
	require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop)
	require.False(t, c.SecurityContext.Escalation)
	require.True(t, c.SecurityContext.ReadOnly)
	return confinement{ID: c.SecurityContext.RunAsUser, Caps: capabilities(t, c.SecurityContext.Capabilities.Add), Args: c.Args}
}

// unit is the service of the packages, or with a drop-in.
func unit(t *testing.T, dropIn string) confinement {
	t.Helper()
	settings := map[string]string{}
	for _, name := range []string{"tcpdiag.service", dropIn} {
		if name == "" {
			continue
		}
		text, err := os.ReadFile(shipped + name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(string(text), -1) {
			settings[m[1]] = m[2]
		}
	}
	require.Equal(t, "yes", settings["DynamicUser"])
	require.Equal(t, "yes", settings["NoNewPrivileges"])
	require.Equal(t, settings["CapabilityBoundingSet"], settings["AmbientCapabilities"])
	command := strings.Fields(strings.Replace(settings["ExecStart"], "$TCPDIAG_ARGS", "", 1))
	require.Equal(t, "/usr/bin/tcpdiag", command[0])
	names := strings.Fields(strings.ReplaceAll(settings["AmbientCapabilities"], "CAP_", ""))
	return confinement{ID: 61184, Caps: capabilities(t, names), Args: command[1:]}
}

// pod is a server of another network namespace with a full accept queue.
type pod struct {
	*nettest.NS
	pid   int
	port  int
	inode uint32
}

// startPod starts a process of this test binary as the server: a namespace is found
// by its processes.
func startPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{NS: nettest.Namespace(t)}
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := p.Command(program, "-test.run", "^TestPodHere$")
	cmd.Env = append(os.Environ(), "TCPDIAG_POD=1")
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	proctest.Run(t, cmd)
	p.pid = cmd.Process.Pid
	_, err = fmt.Fscanln(out, &p.port, &p.inode)
	require.NoError(t, err)
	return p
}

// TestPodHere is a pod's server; it runs until it is killed or its standard input
// ends.
func TestPodHere(t *testing.T) {
	if os.Getenv("TCPDIAG_POD") == "" {
		t.Skip("a part of other tests")
	}
	l := nettest.Listen(t, nettest.ListenOptions{Backlog: 5})
	nettest.Queue(t, l.Addr, 6)
	fmt.Println(l.Addr.Port(), l.Inode)
	_, err := io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
}

// watching has the pod's port among its targets: without a Tomcat it would watch
// nothing beyond its own namespace.
func (c confinement) watching(p *pod) confinement {
	c.Args = append(slices.Clone(c.Args), "--port", fmt.Sprint(p.port))
	return c
}

// sees waits until the agent in a network namespace is ready and reports the pod's
// listener, and returns that.
func sees(t *testing.T, agent *nettest.NS, log func() string, p *pod) (l api.Listener) {
	t.Helper()
	var text []byte
	ok := func() bool {
		var err error
		if text, err = wget(agent, "http://127.0.0.1:10889/-/ready"); err != nil {
			return false
		}
		text, err = wget(agent, "http://127.0.0.1:10889/api/v1/snapshot")
		var snapshot api.Snapshot
		if err != nil || json.Unmarshal(text, &snapshot) != nil {
			return false
		}
		for _, l = range snapshot.Listeners {
			if l.Inode == p.inode && l.AcceptQueue != nil {
				return true
			}
		}
		return false
	}
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(200 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%s%s", text, log())
	}
	require.Equal(t, 6, l.AcceptQueue.Length)
	require.True(t, l.AcceptQueue.Full)
	return l
}

// With what the DaemonSet grants, and nothing of the node but its processes, the
// agent makes the kernel load tcp_diag, and sees who waits in another namespace's
// queue and whose it is.
func TestDaemonSet(t *testing.T) {
	inGuest(t)
	p := startPod(t)
	unload(t)
	own := nettest.Namespace(t)
	l := sees(t, own, nodeAgent(t).watching(p).start(t, own), p)
	require.True(t, loaded(t, "tcp_diag"))
	require.NotNil(t, l.Process)
	require.Equal(t, p.pid, l.Process.PID)
	report("the DaemonSet's container", "loads tcp_diag by its first request; sees another namespace's queue and process")
}

// The unit has no right at all: its requests load tcp_diag too, and it sees the
// queues of its own namespace. With a drop-in's it sees all.
func TestUnit(t *testing.T) {
	inGuest(t)
	p := startPod(t)
	unload(t)
	u := unit(t, "")
	require.Empty(t, u.Caps)
	sees(t, p.NS, u.watching(p).start(t, p.NS), p)
	require.True(t, loaded(t, "tcp_diag"))
	own := nettest.Namespace(t)
	l := sees(t, own, unit(t, "all-namespaces.conf").watching(p).start(t, own), p)
	require.NotNil(t, l.Process)
	require.Equal(t, p.pid, l.Process.PID)
	report("the unit's user", "loads tcp_diag by its first request; sees its namespace's queue, with all-namespaces.conf another's and its process")
}

// Where requests cannot load it, the agent of the DaemonSet and that of the unit
// are not ready until what is documented has been done on the node.
func TestDeployedWithoutTCPDiag(t *testing.T) {
	inGuest(t)
	for name, c := range map[string]confinement{"DaemonSet": nodeAgent(t), "unit": unit(t, "all-namespaces.conf")} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t)
			forbid(t)
			own := nettest.Namespace(t)
			log := c.watching(p).start(t, own)
			require.Eventually(t, func() bool {
				out, err := own.Command("/bin/busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:10889/-/ready").CombinedOutput()
				return err != nil && strings.Contains(string(out), "503") && strings.Contains(log(), "modprobe tcp_diag")
			}, time.Minute, 200*time.Millisecond)
			run(t, "modprobe", "tcp_diag")
			sees(t, own, log, p)
			report("the "+name+" without tcp_diag", "not ready, says why; ready and right once the node has loaded it")
		})
	}
}
