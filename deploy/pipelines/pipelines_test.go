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

// The action hands over each of its inputs, and none is part of a script.
func TestActionHandsOverItsInputs(t *testing.T) {
	content, err := os.ReadFile("action.yml")
	require.NoError(t, err)
	var action struct {
		Inputs map[string]any `yaml:"inputs"`
		Runs   struct {
			Using string `yaml:"using"`
			Steps []struct {
				Env map[string]string `yaml:"env"`
				Run string            `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"runs"`
	}
	require.NoError(t, yaml.Unmarshal(content, &action))
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
