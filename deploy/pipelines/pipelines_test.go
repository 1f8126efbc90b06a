// Package pipelines_test runs the scripts of the pipeline templates as a job would.
package pipelines_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const version = "1.2.3"

// release is a folder as the release page has them, with the program built from this checkout.
func release(t *testing.T) (folder, archive string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tcpdiag")
	out, err := exec.Command("go", "build", "-o", program, "../../cmd/tcpdiag").CombinedOutput()
	require.NoError(t, err, string(out))
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	name := fmt.Sprintf("tcpdiag_%s_linux_%s", version, runtime.GOARCH)
	var buf bytes.Buffer
	packed := gzip.NewWriter(&buf)
	files := tar.NewWriter(packed)
	require.NoError(t, files.WriteHeader(&tar.Header{Name: name + "/tcpdiag", Mode: 0o755, Size: int64(len(content))}))
	_, err = files.Write(content)
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoError(t, packed.Close())
	folder = t.TempDir()
	archive = filepath.Join(folder, "v"+version, name+".tar.gz")
	require.NoError(t, os.MkdirAll(filepath.Dir(archive), 0o755))
	require.NoError(t, os.WriteFile(archive, buf.Bytes(), 0o600))
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(buf.Bytes()), filepath.Base(archive))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(archive), "checksums.txt"), []byte(sums), 0o600))
	return folder, archive
}

// bash runs a script of this folder.
func bash(t *testing.T, env []string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.Command("bash", args...)
	cmd.Env = append(os.Environ(), env...)
	b, err := cmd.CombinedOutput()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func TestAJobOfAPipeline(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds and starts the program")
	}
	for _, tool := range []string{"bash", "curl", "sha256sum", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	releases, archive := release(t)
	env := []string{"TCPDIAG_RELEASES=file://" + releases}
	to := filepath.Join(t.TempDir(), "a folder")
	code, out := bash(t, env, "install.sh", "v"+version, to)
	require.Zero(t, code, out)
	program := filepath.Join(to, "tcpdiag")
	require.Equal(t, program, strings.TrimSpace(out))

	results, summary, output := t.TempDir(), filepath.Join(t.TempDir(), "summary.md"), filepath.Join(t.TempDir(), "output")
	for name, tt := range map[string]struct {
		command string
		env     []string
		code    int
	}{
		"fine":                      {"echo load", []string{"TCPDIAG_FAIL_ON="}, 0},
		"the command's own failure": {"exit 4", nil, 4},
		"nothing listens":           {"true", []string{"TCPDIAG_FAIL_ON=losing"}, 13},
		"quotes are the command's":  {`test "$(printf '%s' 'a "b" $c')" = 'a "b" $c'`, []string{"TCPDIAG_FAIL_ON="}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			env := append([]string{"TCPDIAG_COMMAND=" + tt.command, "TCPDIAG_PORT=1", "GITHUB_STEP_SUMMARY=" + summary, "GITHUB_OUTPUT=" + output}, tt.env...)
			code, out := bash(t, env, "load-test.sh", program, results)
			require.Equal(t, tt.code, code, out)
			for _, file := range []string{"tcpdiag.json", "tcpdiag.xml", "tcpdiag.md"} {
				require.FileExists(t, filepath.Join(results, file))
			}
		})
	}
	content, err := os.ReadFile(summary)
	require.NoError(t, err)
	require.Contains(t, string(content), "## tcpdiag")
	content, err = os.ReadFile(output)
	require.NoError(t, err)
	require.Contains(t, string(content), "json="+filepath.Join(results, "tcpdiag.json"))

	t.Run("the GitLab template's script", func(t *testing.T) { gitlabJob(t, releases) })
	t.Run("the GitHub action's steps", func(t *testing.T) { githubSteps(t, releases) })

	require.NoError(t, os.WriteFile(archive, []byte("another"), 0o600))
	code, out = bash(t, env, "install.sh", version, t.TempDir())
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "is not what its release says")
	code, out = bash(t, env, "install.sh", "1.0; touch x", t.TempDir())
	require.Equal(t, 2, code, out)
	code, out = bash(t, env, "load-test.sh", program, results)
	require.NotZero(t, code)
	require.Contains(t, out, "TCPDIAG_COMMAND")
}

// embedded is gitlab.yml with the scripts in it.
func embedded(t *testing.T, template string) string {
	t.Helper()
	before, rest, found := strings.Cut(template, "  script:\n")
	require.True(t, found)
	_, after, found := strings.Cut(rest, "  artifacts:\n")
	require.True(t, found)
	var b strings.Builder
	b.WriteString(before + "  script:\n    - mkdir -p \"$CI_PROJECT_DIR/.tcpdiag\"\n")
	for _, name := range []string{"install.sh", "load-test.sh"} {
		script, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(script), "\nEND\n")
		fmt.Fprintf(&b, "    - |\n      cat >\"$CI_PROJECT_DIR/.tcpdiag/%s\" <<'END'\n", name)
		for line := range strings.Lines(string(script) + "END\n") {
			b.WriteString("      " + line)
		}
	}
	b.WriteString(`    - bash "$CI_PROJECT_DIR/.tcpdiag/install.sh" "$TCPDIAG_VERSION" "$CI_PROJECT_DIR/.tcpdiag"
    - bash "$CI_PROJECT_DIR/.tcpdiag/load-test.sh" "$CI_PROJECT_DIR/.tcpdiag/tcpdiag" "$CI_PROJECT_DIR/.tcpdiag"
`)
	return b.String() + "  artifacts:\n" + after
}

// What includes the template has no file of ours: it carries the scripts.
func TestTemplateCarriesItsScripts(t *testing.T) {
	content, err := os.ReadFile("gitlab.yml")
	require.NoError(t, err)
	want := embedded(t, string(content))
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("gitlab.yml", []byte(want), 0o644)) //nolint:gosec // it is read by everybody
		return
	}
	require.Equal(t, want, string(content), "UPDATE=1 writes it")
}

// gitlabJob runs the template's job as a runner does, in a project that has no file.
func gitlabJob(t *testing.T, releases string) {
	content, err := os.ReadFile("gitlab.yml")
	require.NoError(t, err)
	var template map[string]struct {
		Variables map[string]string `yaml:"variables"`
		Script    []string          `yaml:"script"`
		Artifacts struct {
			Paths   []string          `yaml:"paths"`
			Reports map[string]string `yaml:"reports"`
		} `yaml:"artifacts"`
	}
	require.NoError(t, yaml.Unmarshal(content, &template))
	job := template[".tcpdiag-load-test"]
	run := func(variables ...string) (project string, code int, out string) {
		project = t.TempDir()
		var env []string
		for name, value := range job.Variables {
			env = append(env, name+"="+value)
		}
		env = append(env, "CI_PROJECT_DIR="+project, "TCPDIAG_RELEASES=file://"+releases, "TCPDIAG_VERSION="+version, "TCPDIAG_PORT=1")
		code, out = bash(t, append(env, variables...), "-eo", "pipefail", "-c", "cd \"$CI_PROJECT_DIR\"\n"+strings.Join(job.Script, "\n"))
		return project, code, out
	}
	project, code, out := run("TCPDIAG_COMMAND=echo the load of $((40 + 2)) clients")
	require.Equal(t, 13, code, out)
	require.Contains(t, out, "the load of 42 clients")
	require.NotEmpty(t, job.Artifacts.Paths)
	for _, path := range append(job.Artifacts.Paths, job.Artifacts.Reports["junit"]) {
		require.FileExists(t, filepath.Join(project, path))
	}
	_, code, out = run("TCPDIAG_COMMAND=exit 4")
	require.Equal(t, 4, code, out)
	_, code, out = run("TCPDIAG_COMMAND=true", "TCPDIAG_FAIL_ON=")
	require.Zero(t, code, out)
	_, code, out = run("TCPDIAG_COMMAND=true", "TCPDIAG_VERSION=9.9.9")
	require.NotZero(t, code, out)
	require.NotContains(t, out, "tcpdiag run", "what could not be installed is not run")
}

// action is action.yml.
type action struct {
	Inputs map[string]struct {
		Default string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Value string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []struct {
			ID    string            `yaml:"id"`
			Shell string            `yaml:"shell"`
			Env   map[string]string `yaml:"env"`
			Run   string            `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	content, err := os.ReadFile("action.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &a))
	return a
}

// githubSteps runs the action's steps as a runner does, with what a workflow gives it.
func githubSteps(t *testing.T, releases string) {
	a := readAction(t)
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	run := func(with map[string]string) (code int, out string, outputs map[string]string) {
		temp := t.TempDir()
		runner := []string{
			"GITHUB_ACTION_PATH=" + here, "RUNNER_TEMP=" + temp, "TCPDIAG_RELEASES=file://" + releases,
			"GITHUB_STEP_SUMMARY=" + filepath.Join(temp, "summary.md"), "GITHUB_OUTPUT=" + filepath.Join(temp, "output"),
		}
		for _, step := range a.Runs.Steps {
			require.Equal(t, "bash", step.Shell)
			env := runner
			for name, value := range step.Env {
				input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
				given, is := with[input]
				if !is {
					given = a.Inputs[input].Default
				}
				env = append(env, name+"="+given)
			}
			script := filepath.Join(temp, "step.sh")
			require.NoError(t, os.WriteFile(script, []byte(step.Run), 0o600))
			if code, out = bash(t, env, "--noprofile", "--norc", "-eo", "pipefail", script); code != 0 {
				break
			}
		}
		outputs = make(map[string]string)
		content, _ := os.ReadFile(filepath.Join(temp, "output")) // none where a step failed before
		for line := range strings.Lines(string(content)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			outputs[name] = value
		}
		return code, out, outputs
	}
	code, out, outputs := run(map[string]string{"version": version, "port": "1", "run": "echo the load of $((40 + 2)) clients", "fail-on": ""})
	require.Zero(t, code, out)
	require.Contains(t, out, "the load of 42 clients")
	for name, output := range a.Outputs {
		require.Equal(t, "${{ steps.run.outputs."+name+" }}", output.Value)
		require.FileExists(t, outputs[name])
	}
	code, out, outputs = run(map[string]string{"version": version, "port": "1", "run": "true"})
	require.Equal(t, 13, code, out)
	require.FileExists(t, outputs["junit"], "it is there when the job fails")
	code, out, _ = run(map[string]string{"version": version, "port": "1", "run": "exit 4"})
	require.Equal(t, 4, code, out)
	code, out, _ = run(map[string]string{"version": "9.9.9", "port": "1", "run": "echo the load"})
	require.NotZero(t, code)
	require.NotContains(t, out, "the load")
}

// The action hands over each of its inputs, and none is part of a script.
func TestActionHandsOverItsInputs(t *testing.T) {
	action := readAction(t)
	require.Equal(t, "composite", action.Runs.Using)
	handed := make(map[string]bool)
	for _, step := range action.Runs.Steps {
		require.NotContains(t, step.Run, "${{", "an input in a script is run as a part of it")
		for _, value := range step.Env {
			handed[value] = true
		}
	}
	require.NotEmpty(t, action.Inputs)
	for name := range action.Inputs {
		require.True(t, handed["${{ inputs."+name+" }}"], name)
	}
}
