package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// compose loads the file as `docker compose config` does: schema, paths and
// references between services are checked.
func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy", "compose", "compose.yml")}, cli.WithName("tcpdiag"))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestComposeFile(t *testing.T) {
	project := compose(t)
	require.ElementsMatch(t, []string{"app", "tcpdiag", "incidents", "prometheus", "alertmanager", "grafana", "k6"}, project.ServiceNames())
	for name, s := range project.Services {
		require.NotEmpty(t, s.Image, name)
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume {
				require.Equal(t, "incidents", v.Source, name)
				continue
			}
			require.Equal(t, types.VolumeTypeBind, v.Type, name)
			require.True(t, v.ReadOnly, "%s: %s", name, v.Source)
			_, err := os.Stat(v.Source)
			require.NoError(t, err, "%s: Docker would make a folder of it", name)
		}
		for _, p := range s.Ports {
			require.Equal(t, "127.0.0.1", p.HostIP, "%s: nothing is for the whole network to see", name)
		}
		if s.Build != nil {
			path := s.Build.Dockerfile
			if !filepath.IsAbs(path) {
				path = filepath.Join(s.Build.Context, path)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, name)
		}
	}
}

// The sidecar has what it needs and nothing else.
func TestComposeSidecar(t *testing.T) {
	project := compose(t)
	app, sidecar := project.Services["app"], project.Services["tcpdiag"]
	require.Equal(t, app.User, sidecar.User, "uid and gid")
	require.Equal(t, "service:app", sidecar.NetworkMode)
	require.Equal(t, "service:app", sidecar.Pid)
	require.Equal(t, []string{"ALL"}, sidecar.CapDrop)
	require.Empty(t, sidecar.CapAdd)
	require.True(t, sidecar.ReadOnly)
	require.Contains(t, sidecar.SecurityOpt, "no-new-privileges:true")
	require.Empty(t, sidecar.Ports, "Docker refuses them where the network is another's")
}

// What the sidecar records outlives its container: in a volume that is given to
// its user first, since Docker makes a new one root's.
func TestComposeRecordings(t *testing.T) {
	project := compose(t)
	require.Contains(t, project.Volumes, "incidents")
	sidecar, prepares := project.Services["tcpdiag"], project.Services["incidents"]
	require.Len(t, sidecar.Volumes, 1)
	require.Equal(t, "incidents", sidecar.Volumes[0].Source)
	require.False(t, sidecar.Volumes[0].ReadOnly)
	require.Subset(t, sidecar.Command, []string{"--incident-dir", sidecar.Volumes[0].Target})
	require.Equal(t, types.ServiceConditionCompletedSuccessfully, sidecar.DependsOn["incidents"].Condition)

	require.Len(t, prepares.Volumes, 1)
	require.Equal(t, "incidents", prepares.Volumes[0].Source)
	require.Equal(t, types.ShellCommand{"chown", sidecar.User, prepares.Volumes[0].Target}, prepares.Entrypoint)
	require.Equal(t, project.Services["app"].Image, prepares.Image, "which has a chown")
	require.Equal(t, []string{"ALL"}, prepares.CapDrop)
	require.Equal(t, []string{"CHOWN"}, prepares.CapAdd)
	require.Equal(t, "none", prepares.NetworkMode)
	require.True(t, prepares.ReadOnly)
}

// What the files mounted say fits the services: names, ports, paths.
func TestComposeConfiguration(t *testing.T) {
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	mounts := map[string]string{} // by where they come from
	for _, s := range compose(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			path, err := filepath.Rel(top, v.Source)
			require.NoError(t, err)
			mounts[path] = v.Target
		}
	}
	var prometheus struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
		}
		Rules  []string `yaml:"rule_files"`
		Scrape []struct {
			Job     string                       `yaml:"job_name"`
			Statics []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "deploy/compose/prometheus.yml", &prometheus)
	require.Equal(t, "/etc/prometheus/rules", mounts["deploy/prometheus"])
	require.Equal(t, []string{"rules/*.rules.yml"}, prometheus.Rules, "from /etc/prometheus")
	require.Equal(t, "tcpdiag", prometheus.Scrape[0].Job, "the alerts know the agent by it")
	require.Equal(t, []string{"app:10889"}, prometheus.Scrape[0].Statics[0].Targets)

	var source struct {
		Datasources []struct {
			URL      string
			JSONData struct {
				Interval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	read(t, "deploy/compose/grafana/datasource.yml", &source)
	require.Equal(t, "http://prometheus:9090", source.Datasources[0].URL)
	require.Equal(t, prometheus.Global.Interval, source.Datasources[0].JSONData.Interval)

	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read(t, "deploy/compose/grafana/dashboards.yml", &providers)
	require.Equal(t, mounts["dashboards"], providers.Providers[0].Options.Path)
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}
