package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/pod-security-admission/api"
)

const archived = "archive: {enabled: true, bucket: 's3://incidents?region=eu-west-1', otlpEndpoint: 'http://collector:4318', cluster: shop-eu}\n"

// withArchive is the agent's pod with the archiver, and that container.
func withArchive(t *testing.T, more string) (*core.PodTemplateSpec, *core.Container) {
	t.Helper()
	agent := recordsTo(t, archived+more)
	c := container(t, &agent.Spec, "archive")
	return agent, &c
}

// The archiver sees the recordings, which the agent gives to its group, and cannot write to them;
// beside them it has its spool.
func TestArchiverReadsTheRecordings(t *testing.T) {
	for given, dir := range map[string]string{
		"":                                "/incidents/tcpdiag",
		"incidents: {volume: hostPath}\n": "/incidents",
	} {
		agent, c := withArchive(t, given)
		require.Contains(t, c.Args, "--incident-dir="+dir)
		require.Contains(t, c.Args, "--bucket=s3://incidents?region=eu-west-1")
		require.Contains(t, c.Args, "--otlp-endpoint=http://collector:4318")
		require.Contains(t, c.Args, "--cluster=shop-eu")
		require.Len(t, c.VolumeMounts, 2)
		volume, at := mounted(t, &agent.Spec, c, "/incidents")
		require.Equal(t, "incidents", volume.Name)
		require.True(t, at.ReadOnly)
		spool, at := mounted(t, &agent.Spec, c, "/var/lib")
		require.False(t, at.ReadOnly)
		require.True(t, spool.EmptyDir.SizeLimit.Equal(resource.MustParse("320Mi")), "more than --spool-max-mib: who exceeds it is evicted")

		records := agent.Spec.Containers[0]
		require.Contains(t, records.Args, "--incident-group=65532")
		require.Equal(t, []int64{65532}, agent.Spec.SecurityContext.SupplementalGroups, "the agent may give its files to a group of its own")
		require.Equal(t, new(int64(65532)), c.SecurityContext.RunAsGroup)
	}
}

// What the archiver adds to the pod forbids nothing more: alone it would be a restricted one.
func TestArchiverIsRestricted(t *testing.T) {
	agent, c := withArchive(t, "")
	require.ElementsMatch(t, []string{"hostNamespaces", "capabilities_baseline", "hostPathVolumes"}, forbidden(t, api.LevelBaseline, agent))
	require.Equal(t, new(true), c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, &core.Capabilities{Drop: []core.Capability{"ALL"}}, c.SecurityContext.Capabilities)
	alone := agent.DeepCopy()
	alone.Spec.HostPID = false
	alone.Spec.Containers = []core.Container{*c}
	alone.Spec.Volumes = slices.DeleteFunc(alone.Spec.Volumes, func(v core.Volume) bool { return v.HostPath != nil })
	require.Empty(t, forbidden(t, api.LevelRestricted, alone))
}

// The identity is on the account, and the agent is left out where the cloud can do that.
func TestArchiversIdentity(t *testing.T) {
	objects := rendered(t, values(t, `
archive: {enabled: true, bucket: gs://incidents, serviceAccountAnnotations: {iam.gke.io/gcp-service-account: a@b}, env: [{name: HTTPS_PROXY, value: "http://proxy"}]}
serviceAccount: {annotations: {mine: "1"}}
`))
	require.Equal(t, map[string]string{"iam.gke.io/gcp-service-account": "a@b", "mine": "1"}, one[*core.ServiceAccount](t, objects).Annotations)
	agent := pod(t, one[*apps.DaemonSet](t, objects))
	c := container(t, &agent.Spec, "archive")
	require.Equal(t, []core.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}, c.Env)
	for _, cloud := range []string{"eks.amazonaws.com", "azure.workload.identity"} {
		require.Equal(t, agent.Spec.Containers[0].Name, agent.Annotations[cloud+"/skip-containers"])
	}
	off := rendered(t, values(t, "archive: {serviceAccountAnnotations: {a: b}}"))
	require.Empty(t, one[*core.ServiceAccount](t, off).Annotations)
	require.Len(t, pod(t, one[*apps.DaemonSet](t, off)).Spec.Containers, 1)
}

// With a policy the pod may ask what the archiver needs, and without the archiver nobody.
func TestArchiversNetworkPolicy(t *testing.T) {
	ports := func(given string) (out []int32) {
		policy := one[*networking.NetworkPolicy](t, rendered(t, values(t, "networkPolicy: {enabled: true}\n"+given)))
		require.Contains(t, policy.Spec.PolicyTypes, networking.PolicyTypeEgress)
		for _, rule := range policy.Spec.Egress {
			for _, p := range rule.Ports {
				out = append(out, p.Port.IntVal)
			}
		}
		return out
	}
	require.Empty(t, ports(""))
	require.Equal(t, []int32{53, 53, 443, 4318}, ports(archived))
	require.Equal(t, []int32{988}, ports("archive: {enabled: true, bucket: gs://incidents, egress: [{ports: [{port: 988}]}]}"))
}

func TestArchiverNeedsSomethingToDo(t *testing.T) {
	for given, says := range map[string]string{
		"archive: {enabled: true}":                  "give archive.bucket, archive.otlpEndpoint or both",
		archived + "incidents: {volume: none}":      "leaves nothing to archive",
		"archive: {bucket: 'file:///var/lib'}":      "bucket",
		"archive: {otlpEndpoint: 'collector:4317'}": "otlpEndpoint",
		"archive: {cluster: a/b}":                   "cluster",
		"archive: {group: 0}":                       "group",
	} {
		_, err := renderChart(t.Context(), chartFolder, values(t, given))
		require.ErrorContains(t, err, says, given)
	}
	// helm upgrade --reuse-values of an older release has no such value at all.
	require.Len(t, recordsTo(t, "archive: null").Spec.Containers, 1)
}
