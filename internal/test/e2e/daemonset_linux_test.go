package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// daemonSet is what deploy/kubernetes gives the node agent.
type daemonSet struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args            []string
					SecurityContext struct {
						RunAsUser    *int `yaml:"runAsUser"`
						Capabilities struct{ Add []string }
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

// nodeAgent is a viewer with the capabilities of the DaemonSet and no other,
// in a network namespace of its own, as a pod is.
func nodeAgent(t *testing.T) (v viewer, args []string) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/kubernetes/daemonset/tcpdiag.yaml")
	require.NoError(t, err)
	_, text2, found := strings.Cut(string(text), "\n---\napiVersion: apps/v1\n")
	require.True(t, found)
	var set daemonSet
	require.NoError(t, yaml.Unmarshal([]byte(text2), &set))
	require.Len(t, set.Spec.Template.Spec.Containers, 1)
	container := set.Spec.Template.Spec.Containers[0]
	require.Equal(t, new(0), container.SecurityContext.RunAsUser)
	v = viewer{name: "node agent", net: nettest.Namespace(t).Path()}
	for _, name := range container.SecurityContext.Capabilities.Add {
		v.caps = append(v.caps, strings.ToLower(name))
	}
	return v, container.Args
}

// With the DaemonSet's privileges, a Tomcat of another user in another network
// namespace is found, with the limits of its server.xml and the cause; with one
// capability less it is not.
func TestLongDaemonSetPrivileges(t *testing.T) {
	artifacts(t)
	v, args := nodeAgent(t) // first: the thread that makes a namespace ends, and its children with it
	p := tomcatPod(t)
	require.Contains(t, args, "--all-namespaces")
	require.NotEmpty(t, v.caps)
	look := []string{"--all-namespaces", "--interval", "1s"}
	l := p.among(t, v.sees(t, look...)())
	require.NotNil(t, l)
	require.Equal(t, p.pid, l.Process.PID)
	require.Equal(t, podConnections, l.Connector.MaxConnections.Value)
	require.Equal(t, podThreads, l.Connector.MaxThreads.Value)
	require.Equal(t, podConnections, l.Connections.Accepted)
	require.Equal(t, podBacklog+1, l.AcceptQueue.Length)
	require.Equal(t, p.cause, l.Verdict.Cause)
	for i, without := range v.caps {
		less := v
		less.caps = slices.Delete(slices.Clone(v.caps), i, i+1)
		d := less.sees(t, look...)()
		if without == "setuid" || without == "setgid" {
			require.NotNil(t, p.among(t, d), "without %s", without)
			said := false
			for _, u := range d.Unavailable {
				said = said || strings.HasPrefix(u.What, "files that not every user may read of pid") && strings.Contains(u.How, "CAP_SETUID and CAP_SETGID")
			}
			require.True(t, said, "without %s: %v", without, d.Unavailable)
			continue
		}
		require.Nil(t, p.among(t, d), "without %s", without)
	}
}

// among is the pod's own listener: a scan of all namespaces finds those of
// everybody who uses the same port on this machine.
func (p *pod) among(t *testing.T, d *rig.Document) *rig.Listener {
	t.Helper()
	var own uint64
	p.do(func() {
		id, err := netns.Current()
		require.NoError(t, err)
		own = uint64(id)
	})
	for i, l := range d.Listeners {
		if l.Port == p.port && l.NetNS == own {
			return &d.Listeners[i]
		}
	}
	return nil
}
