package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// unseeing is tcpdiag as a sidecar of a pod without shareProcessNamespace: in the
// application's network namespace, but in a pid namespace with a /proc of its
// own, as another user, with no capability.
func unseeing(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	const script = `mount -t proc proc /proc &&
exec setpriv --reuid=65532 --regid=65532 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs -- "$@"`
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", append([]string{"-c", script, "sh", artifacts(t).Tcpdiag}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = rig.DiesWithParent()
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // private: nobody else gets its /proc
	return cmd
}

// unseeingSnapshot starts it, and answers its document when asked.
func unseeingSnapshot(t *testing.T, args ...string) func() *rig.Document {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := unseeing(t, append([]string{"snapshot", "--output", "json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	return func() *rig.Document {
		t.Helper()
		require.NoError(t, cmd.Wait(), "%s", &errs)
		d, err := rig.Decode(out.Bytes())
		require.NoError(t, err)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("tcpdiag snapshot %v said, unseeing:\n%s%s", args, &out, &errs)
			}
		})
		return d
	}
}

// unseeingFlags are those that deploy/kubernetes gives such a sidecar, with the
// server's values.
func unseeingFlags(t *testing.T, server *rig.Tomcat) []string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/kubernetes/sidecar/apart/apart.yaml")
	require.NoError(t, err)
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers []struct {
						Args []string `yaml:"args"`
					} `yaml:"initContainers"`
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &manifest))
	require.Len(t, manifest.Spec.Template.Spec.InitContainers, 1)
	args := manifest.Spec.Template.Spec.InitContainers[0].Args
	require.NotEmpty(t, args)
	require.Equal(t, "agent", args[0])
	known := map[string]int{
		"--port": server.Port, "--max-connections": server.MaxConnections,
		"--accept-count": server.AcceptCount, "--max-threads": server.Threads,
	}
	var flags []string
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(arg, "=")
		if name == "--shutdown-delay" || strings.HasPrefix(name, "--incident-") { // the last scrape and a volume are not tested here
			continue
		}
		require.Contains(t, known, name)
		flags = append(flags, name+"="+strconv.Itoa(known[name]))
	}
	return flags
}

// What is left of tcpdiag in a sidecar that cannot see Tomcat's processes: with
// the limits given by hand the same numbers and the same verdict as on the host.
func TestLongSidecarWithoutSharedProcesses(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5})
	warm(t, server)
	flags := unseeingFlags(t, server)
	address := "127.0.0.1:" + strconv.Itoa(fiveDigits())
	agent, err := rig.RunAgent(t.Context(), address, unseeing(t, rig.AgentArgs(address, flags)...))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := agent.Stop()
		require.NoError(t, err)
	})
	clients(t, demo.BurstOptions{ // not all at once: that alone is more than the accept queue holds
		Address: server.Address(), Clients: 24, Rate: 50, Path: hello(20 * time.Second),
		ConnectTimeout: 15 * time.Second, RequestTimeout: time.Minute,
	})
	nettest.Within(t, time.Minute, "ten are inside, four of them served", func() bool {
		return truth(t, server) == rig.Truth{Busy: 4, Connections: 10}
	})
	actuator := "--actuator=http://127.0.0.1:" + strconv.Itoa(server.ManagementPort) + "/actuator"
	port := "--port=" + strconv.Itoa(server.Port)
	sets := map[string][]string{
		"nothing hidden":     {port},
		"flags":              flags,
		"flags and Actuator": append(slices.Clip(flags), actuator),
		"Actuator":           {port, actuator},
	}
	documents := make(map[string]*rig.Document, len(sets))
	later := make(map[string]func() *rig.Document, len(sets))
	for name, args := range sets { // all at once: they see the same packets dropped
		args = append(slices.Clip(args), "--interval=3s")
		if name == "nothing hidden" {
			later[name] = snapshotLater(t, nil, args...)
		} else {
			later[name] = unseeingSnapshot(t, args...)
		}
	}
	for name, answer := range later {
		documents[name] = answer()
	}
	full := time.Now()
	nettest.Within(t, time.Minute, "the agent has scanned since", func() bool {
		d, err := agent.Snapshot(t.Context())
		require.NoError(t, err)
		documents["agent"] = d
		return d.ScanAgeSeconds != nil && *d.ScanAgeSeconds < time.Since(full).Seconds()
	})
	host := listener(t, documents["nothing hidden"], server.Port)
	delete(documents, "nothing hidden")
	for name, d := range documents {
		t.Run(name, func(t *testing.T) {
			l := listener(t, d, server.Port)
			requireSameFunnel(t, host, l)
			require.Nil(t, l.Process, "whose listener it is cannot be seen")
			require.Equal(t, 10, l.Connector.MaxConnections.Value)
			require.Equal(t, 4, l.Connector.MaxThreads.Value)
			if name == "Actuator" {
				require.Equal(t, "Actuator", l.Connector.MaxConnections.Source)
				require.Equal(t, "spring-boot", l.Connector.Framework)
			}
			require.NotEmpty(t, l.Losses.By)
			require.LessOrEqual(t, l.Losses.Unattributed, 1, "a SYN dropped between the first readings of the two counters")
			require.True(t, advises(d, "shareProcessNamespace"), "how to see more: %+v", d.Unavailable)
		})
	}
}

// requireSameFunnel holds that two snapshots found the stages equally full, and
// the same limit to blame.
func requireSameFunnel(t *testing.T, want, got *rig.Listener) {
	t.Helper()
	require.Equal(t, want.AcceptQueue.Length, got.AcceptQueue.Length)
	require.Equal(t, want.AcceptQueue.Limit, got.AcceptQueue.Limit)
	require.Equal(t, want.AcceptQueue.Peak, got.AcceptQueue.Peak)
	require.Equal(t, want.SynBacklog.Limit, got.SynBacklog.Limit)
	require.Equal(t, want.Connections.Sum(), got.Connections.Sum())
	require.Equal(t, want.Connections.Waiting, got.Connections.Waiting)
	require.Equal(t, want.Connections.InService, got.Connections.InService)
	require.Equal(t, want.Capacity, got.Capacity)
	require.Equal(t, want.Verdict.Status, got.Verdict.Status)
	require.Equal(t, want.Verdict.Cause, got.Verdict.Cause)
	require.Equal(t, want.Verdict.Chain, got.Verdict.Chain)
}

// A user who may not read the server's environment has its limits from Actuator,
// be that on a port that was not asked for.
func TestLongAnotherUserAsksActuator(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5})
	warm(t, server)
	var l *rig.Listener
	nettest.Within(t, time.Minute, "Actuator answers in the second that it has", func() bool {
		d := snapshot(t, nobody(), "--port="+strconv.Itoa(server.Port), "--interval=0",
			"--actuator=http://127.0.0.1:"+strconv.Itoa(server.ManagementPort)+"/actuator")
		l = listener(t, d, server.Port)
		return l.Connector.MaxConnections != nil
	})
	require.Equal(t, server.PID, l.Process.PID, "by its threads' names")
	require.Equal(t, 10, l.Connector.MaxConnections.Value)
	require.Equal(t, "Actuator", l.Connector.MaxConnections.Source)
	require.Equal(t, 4, l.Connector.MaxThreads.Value)
}
