package main

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
)

const recordings = "/var/lib/tcpdiag" // where tcpdiag report looks for an ID

// requireRecords holds that the agent records to an emptyDir, in a directory below
// it: the kubelet makes the volume's own writable for everybody (0777), and the
// agent refuses such a one. Nothing evicts the pod for what is in it.
func requireRecords(t *testing.T, pod *core.PodSpec, agent *core.Container) {
	t.Helper()
	require.Contains(t, agent.Args, "--incident-dir="+recordings)
	volume, at := mounted(t, pod, agent, path.Dir(recordings))
	require.NotNil(t, volume.EmptyDir)
	require.Nil(t, volume.EmptyDir.SizeLimit)
	require.False(t, at.ReadOnly)
	require.Empty(t, at.SubPath, "the kubelet makes it as writable as the volume")
}

// mounted is the volume that a container has at a path.
func mounted(t *testing.T, pod *core.PodSpec, c *core.Container, where string) (core.Volume, core.VolumeMount) {
	t.Helper()
	at := slices.IndexFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == where })
	require.GreaterOrEqual(t, at, 0, "nothing at %s", where)
	of := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == c.VolumeMounts[at].Name })
	require.GreaterOrEqual(t, of, 0, "no volume %s", c.VolumeMounts[at].Name)
	return pod.Volumes[of], c.VolumeMounts[at]
}

func recordsTo(t *testing.T, given string) *core.PodTemplateSpec {
	t.Helper()
	return pod(t, one[*apps.DaemonSet](t, rendered(t, values(t, given))))
}

func TestNodeAgentRecords(t *testing.T) {
	agent := recordsTo(t, "")
	requireRecords(t, &agent.Spec, &agent.Spec.Containers[0])
}

// Who wants the recordings to outlive the pod says so, and it is one thing more
// that baseline forbids.
func TestNodeAgentRecordsToTheNode(t *testing.T) {
	for given, want := range map[string]string{
		"incidents: {volume: hostPath}":                            "/var/lib/tcpdiag",
		"incidents: {volume: hostPath, hostPath: /data/incidents}": "/data/incidents",
	} {
		agent := recordsTo(t, given)
		c := &agent.Spec.Containers[0]
		require.Contains(t, c.Args, "--incident-dir="+recordings)
		volume, at := mounted(t, &agent.Spec, c, recordings)
		require.Equal(t, &core.HostPathVolumeSource{Path: want, Type: new(core.HostPathDirectoryOrCreate)}, volume.HostPath)
		require.False(t, at.ReadOnly)
		require.ElementsMatch(t, []string{"hostNamespaces", "capabilities_baseline", "hostPathVolumes"}, forbidden(t, api.LevelBaseline, agent))
	}
}

// helm upgrade --reuse-values of an older release has no such value at all.
func TestNodeAgentRecordsNothing(t *testing.T) {
	for _, given := range []string{"incidents: {volume: none}", "incidents: null"} {
		agent := recordsTo(t, given+"\nkubeletLogs: ''")
		require.Empty(t, agent.Spec.Volumes, given)
		require.Empty(t, agent.Spec.Containers[0].VolumeMounts, given)
		for _, arg := range agent.Spec.Containers[0].Args {
			require.False(t, strings.HasPrefix(arg, "--incident"), arg)
		}
	}
}
