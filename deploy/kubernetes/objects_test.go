package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// decoded are the objects of a manifest, strictly read.
func decoded(t *testing.T, manifest []byte) []runtime.Object {
	t.Helper()
	d, err := newDecoder()
	require.NoError(t, err)
	objects, err := d.decode(manifest)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	return objects
}

// rendered are the chart's objects with these values.
func rendered(t *testing.T, values map[string]any) []runtime.Object {
	t.Helper()
	return decoded(t, renderedText(t, values))
}

// lasting are the objects without those that are there for `helm test` only.
func lasting(t *testing.T, values map[string]any) []runtime.Object {
	t.Helper()
	return slices.DeleteFunc(rendered(t, values), isHook)
}

// hooks are those that `helm test` makes.
func hooks(t *testing.T, values map[string]any) []runtime.Object {
	t.Helper()
	return slices.DeleteFunc(rendered(t, values), func(o runtime.Object) bool { return !isHook(o) })
}

func isHook(o runtime.Object) bool {
	of, ok := o.(meta.Object)
	return ok && of.GetAnnotations()["helm.sh/hook"] == "test"
}

func renderedText(t *testing.T, values map[string]any) []byte {
	t.Helper()
	manifests, err := renderChart(t.Context(), chartFolder, values)
	require.NoError(t, err)
	return []byte(documents(manifests))
}

// every picks the objects of one type.
func every[T runtime.Object](objects []runtime.Object) []T {
	var out []T
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// one is the only object of its type.
func one[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := every[T](objects)
	require.Len(t, found, 1)
	return found[0]
}

// pod is the template of a workload whose selector must match it.
func pod(t *testing.T, o runtime.Object) *core.PodTemplateSpec {
	t.Helper()
	switch w := o.(type) {
	case *apps.Deployment:
		requireSelected(t, w.Spec.Selector.MatchLabels, w.Spec.Template.Labels)
		return &w.Spec.Template
	case *apps.DaemonSet:
		requireSelected(t, w.Spec.Selector.MatchLabels, w.Spec.Template.Labels)
		return &w.Spec.Template
	}
	require.Fail(t, "no workload", "%T", o)
	return nil
}

// requireSelected holds that a selector finds these labels.
func requireSelected(t *testing.T, selector, labels map[string]string) {
	t.Helper()
	require.NotEmpty(t, selector)
	require.Subset(t, labels, selector)
}

// container is the one of that name, native sidecars among them.
func container(t *testing.T, spec *core.PodSpec, name string) core.Container {
	t.Helper()
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "no container "+name)
	return core.Container{}
}
