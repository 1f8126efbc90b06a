package main

import (
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func TestSidecarPodsAreRestricted(t *testing.T) {
	for folder, shares := range map[string]bool{"sidecar": true, "sidecar/apart": false} {
		t.Run(folder, func(t *testing.T) {
			objects := decoded(t, built(t, folder))
			require.Equal(t, "restricted", one[*core.Namespace](t, objects).Labels[api.EnforceLevelLabel])
			tomcat := pod(t, one[*apps.Deployment](t, objects))
			require.Empty(t, forbidden(t, api.LevelRestricted, tomcat))
			require.Equal(t, new(shares), tomcat.Spec.ShareProcessNamespace)
			requireBeside(t, tomcat, "tomcat")

			monitor := one[*monitoring.PodMonitor](t, objects)
			requireSelected(t, monitor.Spec.Selector.MatchLabels, tomcat.Labels)
			require.Equal(t, container(t, &tomcat.Spec, "tcpdiag").Ports[0].Name, *monitor.Spec.PodMetricsEndpoints[0].Port)
			interval, err := time.ParseDuration(string(monitor.Spec.PodMetricsEndpoints[0].Interval))
			require.NoError(t, err)
			require.Greater(t, lingers, interval)
			require.Contains(t, monitor.Name, "tcpdiag", "the alerts on a missing agent know the job by it")
		})
	}
}

// lingers is how long the sidecar runs on after the application has ended: longer
// than between two scrapes, and shorter than the 30 s that Kubernetes waits in all.
const lingers = 20 * time.Second

// requireBeside holds that a native sidecar runs with the very ids of the
// application and may do nothing.
func requireBeside(t *testing.T, pod *core.PodTemplateSpec, application string) {
	t.Helper()
	sidecar, app := container(t, &pod.Spec, "tcpdiag"), container(t, &pod.Spec, application)
	require.Equal(t, new(core.ContainerRestartPolicyAlways), sidecar.RestartPolicy)
	for what, id := range map[string]func(*core.SecurityContext) *int64{
		"uid": func(s *core.SecurityContext) *int64 { return s.RunAsUser },
		"gid": func(s *core.SecurityContext) *int64 { return s.RunAsGroup },
	} {
		require.Nil(t, id(sidecar.SecurityContext), "the pod's %s", what)
		if app.SecurityContext != nil {
			require.Nil(t, id(app.SecurityContext), "the pod's %s", what)
		}
	}
	require.NotNil(t, pod.Spec.SecurityContext.RunAsUser)
	require.NotNil(t, pod.Spec.SecurityContext.RunAsGroup, "the same uid alone opens nothing")
	security := sidecar.SecurityContext
	require.Equal(t, &core.Capabilities{Drop: []core.Capability{"ALL"}}, security.Capabilities)
	require.Equal(t, new(true), security.RunAsNonRoot)
	require.Equal(t, new(false), security.AllowPrivilegeEscalation)
	require.Equal(t, new(true), security.ReadOnlyRootFilesystem)
	require.Len(t, sidecar.VolumeMounts, 1)
	requireRecords(t, &pod.Spec, &sidecar)
	for _, mount := range app.VolumeMounts {
		require.NotEqual(t, sidecar.VolumeMounts[0].Name, mount.Name, "not the application's")
	}
	require.Contains(t, sidecar.Args, "--shutdown-delay="+lingers.String())
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		require.Greater(t, time.Duration(*grace)*time.Second, lingers)
	}
	require.Equal(t, []string{"/usr/local/bin/tcpdiag", "healthcheck"}, sidecar.LivenessProbe.Exec.Command)
	require.Equal(t, "/-/ready", sidecar.ReadinessProbe.HTTPGet.Path)
	for _, of := range []core.ResourceList{sidecar.Resources.Requests, sidecar.Resources.Limits} {
		require.NotZero(t, of.Memory().Value())
		require.NotZero(t, of.Cpu().MilliValue())
	}
}

// Any Deployment with the label gets the sidecar, in addition to what it already has,
// and no other one does.
func TestComponentPatchesAnyDeployment(t *testing.T) {
	files := filesys.MakeFsInMemory()
	for _, name := range []string{"kustomization.yaml", "sidecar.yaml"} {
		text, err := filesys.MakeFsOnDisk().ReadFile("sidecar/component/" + name)
		require.NoError(t, err)
		require.NoError(t, files.WriteFile("/component/"+name, text))
	}
	require.NoError(t, files.WriteFile("/app/kustomization.yaml", []byte(`
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [apps.yaml]
components: [../component]
`)))
	require.NoError(t, files.WriteFile("/app/apps.yaml", []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: basket, labels: {tcpdiag.github.io/sidecar: "true"}}
spec:
  selector: {matchLabels: {app: basket}}
  template:
    metadata: {labels: {app: basket}}
    spec:
      securityContext: {runAsUser: 2000, runAsGroup: 3000}
      initContainers: [{name: migrate, image: basket}]
      containers: [{name: app, image: basket, volumeMounts: [{name: data, mountPath: /data}]}, {name: proxy, image: proxy}]
      volumes: [{name: data, emptyDir: {}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {tcpdiag.github.io/sidecar: "true"}}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      securityContext: {runAsUser: 2001, runAsGroup: 3001}
      containers: [{name: app, image: shop}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: database}
spec:
  selector: {matchLabels: {app: database}}
  template:
    metadata: {labels: {app: database}}
    spec:
      containers: [{name: app, image: database}]
`)))
	deployments := map[string]*apps.Deployment{}
	for _, d := range every[*apps.Deployment](decoded(t, builtFrom(t, files, "/app"))) {
		deployments[d.Name] = d
	}
	require.Len(t, deployments, 3)
	for name, ids := range map[string][2]int64{"basket": {2000, 3000}, "shop": {2001, 3001}} {
		p := pod(t, deployments[name])
		requireBeside(t, p, "app")
		require.Equal(t, ids, [2]int64{*p.Spec.SecurityContext.RunAsUser, *p.Spec.SecurityContext.RunAsGroup}, "untouched")
		require.Equal(t, new(true), p.Spec.ShareProcessNamespace)
		require.Equal(t, "tcpdiag", p.Spec.InitContainers[0].Name, "before what may run long")
	}
	basket := pod(t, deployments["basket"])
	require.Len(t, basket.Spec.InitContainers, 2)
	require.Len(t, basket.Spec.Containers, 2)
	require.Len(t, basket.Spec.Volumes, 2, "its own, too")
	database := pod(t, deployments["database"])
	require.Empty(t, database.Spec.InitContainers)
	require.Empty(t, database.Spec.Volumes)
	require.Nil(t, database.Spec.ShareProcessNamespace)
}

// The sidecar and the chart run the same release.
func TestSidecarAndChartRunTheSameImage(t *testing.T) {
	tomcat := one[*apps.Deployment](t, decoded(t, built(t, "sidecar")))
	agent := one[*apps.DaemonSet](t, rendered(t, nil))
	require.Equal(t, agent.Spec.Template.Spec.Containers[0].Image, container(t, &tomcat.Spec.Template.Spec, "tcpdiag").Image)
}
