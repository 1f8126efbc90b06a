package structure

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// top is the repository's folder.
const top = "../../.."

// A tag of another's action can be moved after it was reviewed, a commit cannot.
func TestActionsArePinnedByCommit(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: ([^\s.][^\s]*)(.*)$`)
	pinned := regexp.MustCompile(`@[0-9a-f]{40}$`)
	for _, name := range append(files, filepath.Join(top, "deploy/pipelines/action.yml")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, pinned, m[1], name)
			require.Regexp(t, `^ # v\d+\.\d+\.\d+$`, m[2], "%s: %s without the version that the commit is", name, m[1])
		}
	}
}

// workflow is what of one can give rights away.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `yaml:"permissions"`
		Steps       []struct {
			Run string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// What a workflow does not need it has no right to: reading is all that holds for all jobs, and what a job may
// write is listed here.
func TestWorkflowsHaveFewRights(t *testing.T) {
	may := map[string][]string{
		"release.yml release": {"attestations", "contents", "id-token", "packages"},
		"site.yml publish":    {"id-token", "pages"},
	}
	files, err := filepath.Glob(filepath.Join(top, ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		var w workflow
		require.NoError(t, yaml.Unmarshal(text, &w), name)
		require.Equal(t, map[string]string{"contents": "read"}, w.Permissions, name)
		// These run with the repository's rights on what a stranger wrote.
		require.NotContains(t, string(text), "pull_request_target", name)
		require.NotContains(t, string(text), "workflow_run", name)
		for job, j := range w.Jobs {
			var writes []string
			for what, right := range j.Permissions {
				if right != "read" {
					writes = append(writes, what)
				}
			}
			slices.Sort(writes)
			key := filepath.Base(name) + " " + job
			require.Equal(t, may[key], writes, key)
			for _, s := range j.Steps {
				// A branch's or a title's text would become a part of the script.
				require.NotContains(t, s.Run, "${{", key)
			}
		}
	}
}

// repository lists its files; not where there is no repository, as in an archive of the sources.
func repository(t *testing.T) (names []string) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		t.Skipf("no repository: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		names = append(names, name)
	}
	require.Greater(t, len(names), 500)
	return names
}

// Nothing is in the repository that runs and cannot be read: programs, classes and archives are made when they are
// needed.
func TestNoBinariesInTheRepository(t *testing.T) {
	known := []string{"deploy/kubernetes/cluster/testdata/tcpdiag-0.0.9.tgz"} // the chart of a release before: templates alone
	endings := []string{
		".7z", ".a", ".apk", ".bz2", ".class", ".deb", ".dll", ".dylib", ".exe", ".gz", ".jar", ".jks", ".key", ".o", ".p12", ".pem", ".pfx", ".pyc",
		".rpm", ".so", ".tar", ".tgz", ".war", ".wasm", ".xz", ".zip", ".zst",
	}
	begins := [][]byte{
		[]byte("\x7fELF"), []byte("MZ"), []byte("PK\x03\x04"), []byte("\x1f\x8b"), []byte("\xca\xfe\xba\xbe"), []byte("\xcf\xfa\xed\xfe"),
		[]byte("\x00asm"), []byte("!<arch>\n"), []byte("\xfd7zXZ"), []byte("BZh"), []byte("\x28\xb5\x2f\xfd"),
	}
	for _, name := range repository(t) {
		if slices.Contains(known, name) {
			continue
		}
		require.NotContains(t, endings, filepath.Ext(name), name)
		f, err := os.Open(filepath.Join(top, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		require.NoError(t, err)
		head, err := io.ReadAll(io.LimitReader(f, 8))
		require.NoError(t, f.Close())
		require.NoError(t, err, name)
		for _, b := range begins {
			require.False(t, bytes.HasPrefix(head, b), "%s is a program or an archive (%q)", name, head)
		}
	}
}

// Who is told of new versions is told of all: each module, image and action.
func TestDependenciesAreFollowed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, ".github/dependabot.yml"))
	require.NoError(t, err)
	var c struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	require.NoError(t, yaml.Unmarshal(text, &c))
	followed := make(map[string][]string)
	for _, u := range c.Updates {
		followed[u.Ecosystem] = append(followed[u.Ecosystem], u.Directories...)
	}
	there := map[string][]string{"github-actions": {"/"}}
	add := func(ecosystem, name string) {
		dir := "/" + strings.TrimPrefix(filepath.Dir(name), ".")
		if !slices.Contains(there[ecosystem], dir) {
			there[ecosystem] = append(there[ecosystem], dir)
		}
	}
	for _, name := range repository(t) {
		switch base := filepath.Base(name); {
		case base == "go.mod" && !strings.Contains(name, "testdata/"):
			add("gomod", name)
		case strings.HasSuffix(base, "Dockerfile"):
			add("docker", name)
		case base == "action.yml":
			add("github-actions", name)
		}
	}
	for ecosystem, dirs := range there {
		require.ElementsMatch(t, dirs, followed[ecosystem], ecosystem)
	}
}
