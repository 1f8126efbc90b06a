package main

import (
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// forbidden are the checks of a Pod Security profile, in its newest version,
// that a pod fails: the very code of the API server's admission. A restricted
// pod has to pass baseline's, too.
func forbidden(t *testing.T, level api.Level, pod *core.PodTemplateSpec) []string {
	t.Helper()
	var failed []string
	for _, check := range policy.DefaultChecks() {
		if level == api.LevelBaseline && check.Level != api.LevelBaseline {
			continue
		}
		newest := check.Versions[len(check.Versions)-1]
		if result := newest.CheckPod(&pod.ObjectMeta, &pod.Spec); !result.Allowed {
			t.Logf("%s: %s: %s", check.ID, result.ForbiddenReason, result.ForbiddenDetail)
			failed = append(failed, string(check.ID))
		}
	}
	return failed
}
