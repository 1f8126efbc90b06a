package cluster

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isolate gives this process, the first of its pid namespace, folders of its
// own where kubelet and containerd have fixed ones, a network with a bridge for
// the pods, and values of its own where the kubelet would set the machine's.
func isolate(t *testing.T) {
	t.Helper()
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	require.NoError(t, unix.Mount("proc", "/proc", "proc", 0, ""))
	for _, dir := range []string{"/run", "/var/lib", "/var/log"} {
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	}
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		file := "/run/sysctl-" + filepath.Base(name)
		require.NoError(t, os.WriteFile(file, []byte(value+"\n"), 0o644))
		require.NoError(t, unix.Mount(file, "/proc/sys/"+name, "", unix.MS_BIND, ""))
	}
	for _, args := range []string{
		"link set lo up", "link add br0 type bridge", "addr add 10.88.0.1/24 dev br0", "link set br0 up",
	} {
		out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", args, out)
	}
}

const containerdConfig = `
version = 2
root = "%[1]s/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause:test"
  restrict_oom_score_adj = true # where CAP_SYS_RESOURCE is missing
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%[2]s"
    conf_dir = "%[1]s"
`

const network = `{"cniVersion": "0.3.1", "name": "pods", "type": "bridge", "bridge": "br0",
 "ipam": {"type": "host-local", "subnet": "10.88.0.0/24", "rangeStart": "10.88.0.10"}}`

const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: %[1]s/ca.crt}}
resolvConf: ""
clusterDNS: [%[3]s]
clusterDomain: cluster.local
evictionHard: {memory.available: 10Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
`

// startNode runs containerd and a kubelet, whose pods' cgroups are below one of
// that name; the images are there, so that none is pulled.
func (c *cluster) startNode(t *testing.T, cgroup string, images []string) {
	t.Helper()
	write := func(name, text string) string {
		require.NoError(t, os.WriteFile(c.file(name), []byte(text), 0o600))
		return c.file(name)
	}
	write("pods.conf", network)
	start(t, c.dir, installed(t, "containerd"), "--config", write("containerd.toml", fmt.Sprintf(containerdConfig, c.dir, c.programs)))
	within(t, 30*time.Second, "containerd answers", func() bool {
		return exec.CommandContext(t.Context(), "ctr", "version").Run() == nil
	})
	for _, image := range images {
		c.run(t, "ctr --namespace k8s.io images import "+image)
	}
	makeCgroup(t, cgroup)
	start(t, c.dir, c.program("kubelet"), "--config", write("kubelet.yaml", fmt.Sprintf(kubeletConfig, c.dir, cgroup, nodeAddress)),
		"--kubeconfig", c.kubeconfig(t, c.url, "system:node:"+nodeName, "system:nodes"),
		"--cert-dir", c.dir, "--hostname-override", nodeName, "--node-ip", "10.88.0.1")
	within(t, time.Minute, "the node is ready", func() bool {
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), nodeName, meta.GetOptions{})
		return err == nil && ready(node)
	})
}

func ready(node *core.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == core.NodeReady {
			return condition.Status == core.ConditionTrue
		}
	}
	return false
}

func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	require.NoError(t, err, "Debian: containerd, runc")
	return path
}

// makeCgroup makes the folder in every hierarchy there is. Version 1 has cpusets
// that are empty at first.
func makeCgroup(t *testing.T, name string) {
	t.Helper()
	parents := []string{"/sys/fs/cgroup"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		parents, err = filepath.Glob("/sys/fs/cgroup/*")
		require.NoError(t, err)
	}
	for _, parent := range parents {
		require.NoError(t, os.Mkdir(filepath.Join(parent, name), 0o755))
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if value, err := os.ReadFile(filepath.Join(parent, file)); err == nil {
				require.NoError(t, os.WriteFile(filepath.Join(parent, name, file), value, 0o644))
			}
		}
		for file, one := range map[string]float64{"cpu.shares": 1024, "cpu.weight": 100} {
			if file = filepath.Join(parent, name, file); writable(file) {
				require.NoError(t, os.WriteFile(file, strconv.AppendInt(nil, int64(one*podsWeight()), 10), 0o644))
			}
		}
	}
}

// podsWeight is what the pods weigh beside a process of nice 0, for each of which a step of nice is a
// quarter: as on a node, a processor's worth for each there is, beside a control plane that has
// this process's priority.
func podsWeight() float64 {
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 1
	}
	return min(float64(runtime.NumCPU())*math.Pow(1.25, float64(nice-20)), 100) // the system call gives 20 less nice
}

func writable(file string) bool { return unix.Access(file, unix.W_OK) == nil }

// removeCgroup takes what is left away once no process is: from the leaves up.
func removeCgroup(t *testing.T, name string) {
	t.Helper()
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, dir := range append(v1, "/sys/fs/cgroup/"+name) {
		within(t, 10*time.Second, dir+" can be removed", func() bool {
			// Not with t's context: this is cleaning up.
			_ = exec.CommandContext(context.Background(), "find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
			_, err := os.Stat(dir)
			return os.IsNotExist(err)
		})
	}
}

// namespaces are what the node has of its own.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
}
