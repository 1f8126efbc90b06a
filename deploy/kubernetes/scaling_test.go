package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	autoscaling "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"
)

// scaledObject has the fields of KEDA's ScaledObject (keda.sh/v1alpha1) that the example uses: one
// that is misspelled is an error.
type scaledObject struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	Spec             struct {
		ScaleTargetRef                   struct{ Name string }
		MinReplicaCount, MaxReplicaCount int32
		Advanced                         struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscaling.HorizontalPodAutoscalerBehavior
			}
		}
		Fallback struct {
			FailureThreshold, Replicas int32
			Behavior                   string
		}
		Triggers []struct {
			Type, MetricType string
			Metadata         struct{ ServerAddress, Query, Threshold string }
		}
	}
}

// recorded are the names of the rules of deploy/prometheus.
func recorded(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../prometheus/recording.rules.yml")
	require.NoError(t, err)
	out := make(map[string]bool)
	for _, m := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = true
	}
	return out
}

// requireRecorded holds that what of tcpdiag's is asked for is a rule.
func requireRecorded(t *testing.T, query string) {
	t.Helper()
	name := regexp.MustCompile(`workload:[a-z0-9_:]+`).FindString(query)
	require.True(t, recorded(t)[name], query)
}

func TestScaledObject(t *testing.T) {
	text, err := os.ReadFile("scaling/keda.yaml")
	require.NoError(t, err)
	var o scaledObject
	require.NoError(t, yaml.UnmarshalStrict(text, &o))
	require.Equal(t, "keda.sh/v1alpha1 ScaledObject", o.APIVersion+" "+o.Kind)
	require.Len(t, o.Spec.Triggers, 2)
	for _, trigger := range o.Spec.Triggers {
		require.Equal(t, "prometheus", trigger.Type)
		require.Equal(t, "Value", trigger.MetricType, "the rule is an average of the pods already")
		requireRecorded(t, trigger.Metadata.Query)
	}
}

// The autoscaler asks for what the adapter's rules serve, and both have KEDA's thresholds.
func TestAutoscaler(t *testing.T) {
	text, err := os.ReadFile("scaling/hpa.yaml")
	require.NoError(t, err)
	hpa := one[*autoscaling.HorizontalPodAutoscaler](t, decoded(t, text))
	text, err = os.ReadFile("scaling/adapter-values.yaml")
	require.NoError(t, err)
	var adapter struct {
		Rules struct {
			External []struct {
				SeriesQuery, MetricsQuery string
				Resources                 struct {
					Overrides map[string]map[string]string
				}
				Name struct{ As string }
			}
		}
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &adapter))
	served := make(map[string]bool)
	for _, rule := range adapter.Rules.External {
		requireRecorded(t, rule.SeriesQuery)
		served[rule.Name.As] = true
	}
	require.Len(t, hpa.Spec.Metrics, 2)
	for i, want := range []string{"500m", "100m"} {
		m := hpa.Spec.Metrics[i].External
		require.True(t, served[m.Metric.Name], m.Metric.Name)
		require.Equal(t, autoscaling.ValueMetricType, m.Target.Type)
		require.Equal(t, want, m.Target.Value.String())
	}
}
