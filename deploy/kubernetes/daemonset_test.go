package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
)

func TestStaticManifestsAreFresh(t *testing.T) {
	for _, s := range statics() {
		t.Run(s.path, func(t *testing.T) {
			want, err := s.render(t.Context())
			require.NoError(t, err)
			got, err := os.ReadFile(s.path)
			require.NoError(t, err)
			require.Equal(t, want, string(got), "stale: run make manifests")
		})
	}
}

// The agent's pod is one for a privileged namespace, and what it needs beyond
// the profiles is exactly this.
func TestNodeAgentPodSecurity(t *testing.T) {
	objects := decoded(t, built(t, "daemonset"))
	agent := pod(t, one[*apps.DaemonSet](t, objects))
	require.ElementsMatch(t, []string{"hostNamespaces", "capabilities_baseline", "hostPathVolumes"}, forbidden(t, api.LevelBaseline, agent))
	require.ElementsMatch(t, []string{
		"hostNamespaces", "capabilities_baseline", "hostPathVolumes", // again
		"capabilities_restricted", "restrictedVolumes", "runAsNonRoot", "runAsUser",
	}, forbidden(t, api.LevelRestricted, agent))
	namespace := one[*core.Namespace](t, objects)
	require.Equal(t, "privileged", namespace.Labels[api.EnforceLevelLabel])

	agent.Spec.HostPID = false
	agent.Spec.Containers[0].SecurityContext.Capabilities.Add = nil
	agent.Spec.Volumes = nil
	require.Empty(t, forbidden(t, api.LevelBaseline, agent), "without the three it would be a baseline pod")
}

// AppArmor and SELinux off are two more things that baseline forbids: they are
// for those who ask for them.
func TestNodeAgentUnconfined(t *testing.T) {
	objects := rendered(t, values(t, "{appArmorProfile: {type: Unconfined}, seLinuxOptions: {type: spc_t}}"))
	require.ElementsMatch(t, []string{"hostNamespaces", "capabilities_baseline", "hostPathVolumes", "appArmorProfile", "seLinuxOptions"},
		forbidden(t, api.LevelBaseline, pod(t, one[*apps.DaemonSet](t, objects))))
}

// The privileges, one by one.
func TestNodeAgentPrivileges(t *testing.T) {
	objects := rendered(t, nil)
	spec := pod(t, one[*apps.DaemonSet](t, objects)).Spec
	require.True(t, spec.HostPID, "the processes of all pods")
	require.False(t, spec.HostNetwork)
	require.False(t, spec.HostIPC)
	requireKubeletsFoldersOnly(t, &spec)
	require.Equal(t, new(false), spec.AutomountServiceAccountToken)
	require.Len(t, spec.Containers, 1)
	require.Empty(t, spec.InitContainers)
	security := spec.Containers[0].SecurityContext
	require.Equal(t, &core.Capabilities{
		Drop: []core.Capability{"ALL"}, Add: []core.Capability{"SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID"},
	}, security.Capabilities)
	require.Equal(t, new(int64(0)), security.RunAsUser, "no other user's added capabilities are effective")
	require.Equal(t, new(false), security.Privileged)
	require.Equal(t, new(false), security.AllowPrivilegeEscalation)
	require.Equal(t, new(true), security.ReadOnlyRootFilesystem)
	require.Equal(t, core.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
	require.Equal(t, new(false), one[*core.ServiceAccount](t, objects).AutomountServiceAccountToken)
}

// requireKubeletsFoldersOnly holds that of the node nothing else is mounted, and that not to be
// written.
func requireKubeletsFoldersOnly(t *testing.T, spec *core.PodSpec) {
	t.Helper()
	var paths []string
	for _, v := range spec.Volumes {
		if v.HostPath == nil {
			continue
		}
		paths = append(paths, v.HostPath.Path)
		_, at := mounted(t, spec, &spec.Containers[0], v.HostPath.Path)
		require.True(t, at.ReadOnly)
		require.Nil(t, at.MountPropagation)
	}
	require.Equal(t, []string{"/var/log/pods", "/var/log/containers"}, paths)
}

// Without the folders nothing of the node is mounted, and a release that is older than the value
// stays as it is.
func TestNodeAgentWithoutNames(t *testing.T) {
	for _, given := range []string{`kubeletLogs: ""`, "kubeletLogs: null"} {
		agent := pod(t, one[*apps.DaemonSet](t, rendered(t, values(t, given))))
		require.Len(t, agent.Spec.Volumes, 1, given)
		require.NotContains(t, agent.Spec.Containers[0].Args, "--kubelet-logs=/var/log", given)
	}
	agent := pod(t, one[*apps.DaemonSet](t, rendered(t, values(t, "kubeletLogs: /data/log/"))))
	volume, _ := mounted(t, &agent.Spec, &agent.Spec.Containers[0], "/var/log/pods")
	require.Equal(t, "/data/log/pods", volume.HostPath.Path)
}

// What reads other users' environments is there for those who ask for it, and
// fails no other check.
func TestNodeAgentReadsEnvironments(t *testing.T) {
	agent := pod(t, one[*apps.DaemonSet](t, rendered(t, values(t, "dacReadSearch: true"))))
	require.Equal(t, []core.Capability{"SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID", "DAC_READ_SEARCH"},
		agent.Spec.Containers[0].SecurityContext.Capabilities.Add)
	require.ElementsMatch(t, []string{"hostNamespaces", "capabilities_baseline", "hostPathVolumes"}, forbidden(t, api.LevelBaseline, agent))
}

// So is what counts clients.
func TestNodeAgentCountsClients(t *testing.T) {
	agent := pod(t, one[*apps.DaemonSet](t, rendered(t, values(t, "handshakes: true"))))
	require.Equal(t, []core.Capability{"SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID", "NET_RAW"},
		agent.Spec.Containers[0].SecurityContext.Capabilities.Add)
}

// A changed configuration reaches the agents: their pods change with it.
func TestConfigurationRollsTheAgents(t *testing.T) {
	checksum := func(port int) string {
		objects := rendered(t, map[string]any{"config": map[string]any{"targets": []any{map[string]any{"port": port}}}})
		agent := pod(t, one[*apps.DaemonSet](t, objects))
		require.Contains(t, agent.Spec.Containers[0].Args, "--config=/etc/tcpdiag/tcpdiag.yml")
		require.Equal(t, one[*core.ConfigMap](t, objects).Name, agent.Spec.Volumes[1].ConfigMap.Name)
		require.True(t, agent.Spec.Containers[0].VolumeMounts[1].ReadOnly)
		return agent.Annotations["checksum/config"]
	}
	require.Equal(t, checksum(8080), checksum(8080))
	require.NotEqual(t, checksum(8080), checksum(8081))
}
